//go:build amd64 && !purego

package csv

import "golang.org/x/sys/cpu"

// markBlocks goes through blocks of 64 bytes of text, one at least. Of each it sets the bits of marks whose bytes are one of the four wanted, and
// those of highs whose bytes are beyond 127. It returns all bits of highs.
//
//go:noescape
func markBlocks(marks, highs *uint64, text *byte, blocks int, wanted *[4]byte) (any uint64)

var marked = cpu.X86.HasAVX2 // whether there is a markBlocks
