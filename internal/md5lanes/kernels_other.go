//go:build !amd64 || purego

package md5lanes

var width = 0 // crypto/md5 alone

func hashBlocks(*[4][Lanes]uint32, *[Lanes]*byte, int) { panic("md5lanes: no lanes") }
