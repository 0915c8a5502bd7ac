//go:build amd64 && !purego

package md5lanes

import "golang.org/x/sys/cpu"

//go:generate go run generate.go

// blocks8 and blocks16 take the state of each lane through blocks of its data, of the first 8 lanes and of all 16. All lanes have data of
// that length. They are the only code here that reads memory by address.
//
//go:noescape
func blocks8(state *[4][Lanes]uint32, data *[Lanes]*byte, blocks int)

//go:noescape
func blocks16(state *[4][Lanes]uint32, data *[Lanes]*byte, blocks int)

// width is how many lanes the processor has; 0 is none.
var width = func() int {
	switch {
	case cpu.X86.HasAVX512F:
		return 16
	case cpu.X86.HasAVX2:
		return 8
	}
	return 0
}()

func hashBlocks(state *[4][Lanes]uint32, data *[Lanes]*byte, blocks int) {
	if width == 16 {
		blocks16(state, data, blocks)
		return
	}
	blocks8(state, data, blocks)
}
