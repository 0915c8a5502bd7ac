// Package spill keeps compressed frames of bytes on disk. Store.Write takes bytes and returns a Frame; Read returns the
// bytes until the frame is freed. Damage is detected, and a full disk does not affect earlier frames. The file is never
// larger than the largest total of frames held at once. The next run removes the files of a killed run.
package spill
