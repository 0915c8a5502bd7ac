// Package spill keeps compressed frames of bytes on disk. Store.Write takes bytes and returns a Frame; Read returns
// them until it is freed. Damage is detected, a full disk does not affect earlier frames, the file is never larger than
// its frames were at once, and the next run removes the files of a killed one.
package spill
