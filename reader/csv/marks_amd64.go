//go:build amd64 && !purego

package csv

import "golang.org/x/sys/cpu"

// markBlocks marks the wanted bytes in 64-byte blocks, and bytes above 127 in highs. It returns the OR of all highs.
//
//go:noescape
func markBlocks(marks, highs *uint64, text *byte, blocks int, wanted *[4]byte) (any uint64)

var marked = cpu.X86.HasAVX2 // whether the processor supports markBlocks
