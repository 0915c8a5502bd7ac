package readorder

import "math/bits"

// paint records which section last covered each place, in runs of places, so the cost of covering grows with these.
type paint struct {
	owner  []int32    // by place: the section of the run that begins there; -1 means none
	begins [][]uint64 // a bit for each place where a run begins; in higher levels, one for each nonzero word
}

func newPaint(n int) *paint {
	p := &paint{owner: make([]int32, n+1)}
	for words := n + 1; ; {
		words = (words + 63) / 64
		p.begins = append(p.begins, make([]uint64, words))
		if words == 1 {
			break
		}
	}
	p.owner[0] = -1
	p.set(0)
	return p
}

// cover paints the places from lower to upper and appends the covered sections to under.
func (p *paint) cover(lower, upper, section int32, under []int32) []int32 {
	p.cut(lower)
	if int(upper)+1 < len(p.owner) {
		p.cut(upper + 1)
	}
	for at := lower; at >= 0 && at <= upper; at = p.next(at + 1) {
		if o := p.owner[at]; o >= 0 && o != section {
			under = append(under, o)
		}
		if at != lower {
			p.clear(at)
		}
	}
	p.owner[lower] = section
	return under
}

func (p *paint) cut(at int32) {
	if p.begins[0][at/64]>>(at%64)&1 == 1 {
		return
	}
	p.owner[at] = p.owner[p.last(at)]
	p.set(at)
}

func (p *paint) set(at int32) {
	for level := range p.begins {
		p.begins[level][at/64] |= 1 << (at % 64)
		at /= 64
	}
}

func (p *paint) clear(at int32) {
	for level := range p.begins {
		if p.begins[level][at/64] &^= 1 << (at % 64); p.begins[level][at/64] != 0 {
			return
		}
		at /= 64
	}
}

// next returns the first place from at on where a run begins, or -1.
func (p *paint) next(at int32) int32 {
	for level := 0; level < len(p.begins); level++ {
		if int(at/64) >= len(p.begins[level]) {
			return -1
		}
		if word := p.begins[level][at/64] >> (at % 64); word != 0 {
			at += int32(bits.TrailingZeros64(word))
			for ; level > 0; level-- {
				at = at*64 + int32(bits.TrailingZeros64(p.begins[level-1][at]))
			}
			return at
		}
		at = at/64 + 1
	}
	return -1
}

// last returns the last place up to at where a run begins. A run always begins at 0.
func (p *paint) last(at int32) int32 {
	for level := 0; at >= 0; level++ {
		if word := p.begins[level][at/64] << (63 - at%64); word != 0 {
			at -= int32(bits.LeadingZeros64(word))
			for ; level > 0; level-- {
				at = at*64 + 63 - int32(bits.LeadingZeros64(p.begins[level-1][at]))
			}
			return at
		}
		at = at/64 - 1
	}
	return 0
}
