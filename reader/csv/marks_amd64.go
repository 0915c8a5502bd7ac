//go:build amd64 && !purego

package csv

import "golang.org/x/sys/cpu"

// markBlocks goes through 64-byte blocks of text, at least one. In marks it sets the bits of bytes that are one of the
// four wanted, in highs those of bytes above 127. It returns all bits of highs.
//
//go:noescape
func markBlocks(marks, highs *uint64, text *byte, blocks int, wanted *[4]byte) (any uint64)

var marked = cpu.X86.HasAVX2 // whether markBlocks can be used
