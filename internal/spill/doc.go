// Package spill keeps frames of opaque bytes on disk, compressed. Bytes come in and a Frame that names them goes out; the
// Frame brings the same bytes back until it is freed. It promises that damage is found and never handed out, that a
// full disk costs no earlier frame, that the file is never larger than the frames it once held at the same time, that
// memory stays at two compressors and two decompressors, and that what a killed run leaves is removed by the next.
// It knows nothing of rows, of lanes, or of which frame is needed when.
package spill
