// Package md5lanes computes the MD5 of several texts at once, which costs little more than that of one: a step of MD5 waits for the one
// before it, so a processor has time for 8 texts (AVX2) or 16 (AVX-512) beside each other. Make a Group, a Hasher of it for each
// goroutine, and call Hasher.Sum: texts that are asked for at about the same time are hashed together. Without such a processor, and for
// a text that nobody shares the time with, it is crypto/md5. The sums are always those of crypto/md5.
package md5lanes
