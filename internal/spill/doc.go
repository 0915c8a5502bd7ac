// Package spill keeps frames of opaque bytes on disk, compressed. Store.Write takes bytes and returns a Frame; Read
// returns the same bytes until the frame is freed. Damage is detected and never returned, a full disk does not affect
// earlier frames, the file is never larger than its frames were at the same time, memory stays at two compressors and
// two decompressors, and the next run removes the files of a killed run. The package does not know what the bytes mean.
package spill
