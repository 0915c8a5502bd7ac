// Package spill keeps compressed frames of bytes on disk. Store.Write takes bytes and returns a Frame; Read returns
// them until the frame is freed. Damage is detected, and a full disk does not affect earlier frames. The file is never
// larger than the frames that existed at once, and the next run removes the files of a killed one.
package spill
