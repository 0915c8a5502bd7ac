package spill

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSpaceIsNeverGivenTwiceAndNeverLost keeps a list of who has each block.
func TestSpaceIsNeverGivenTwiceAndNeverLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]int64{0, 20 * blockBytes}).Draw(t, "limit")
		s := space{max: limit}
		var used [200]bool
		var frames [][]extent
		inUse := func() (n, end int64) {
			for i, u := range used {
				if u {
					n, end = n+1, int64(i+1)
				}
			}
			return n, end
		}
		mark := func(extents []extent, as bool) {
			for _, e := range extents {
				for b := e.at / blockBytes; b < e.end()/blockBytes; b++ {
					if used[b] == as {
						t.Fatalf("block %d of %v is in use: %v", b, extents, as)
					}
					used[b] = as
				}
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "operations") {
			if len(frames) > 0 && rapid.Bool().Draw(t, "give") {
				i := rapid.IntRange(0, len(frames)-1).Draw(t, "frame")
				mark(frames[i], false)
				s.give(frames[i])
				frames = slices.Delete(frames, i, i+1)
			} else {
				bytes := rapid.IntRange(0, 3*blockBytes).Draw(t, "bytes")
				before, _ := inUse()
				need := int64(bytes+blockBytes-1) / blockBytes
				extents, ok := s.take(bytes)
				if fits := limit == 0 || (before+need)*blockBytes <= limit; ok != fits {
					t.Fatalf("%d blocks beside %d: taken %v", need, before, ok)
				}
				mark(extents, true)
				if after, _ := inUse(); ok && after != before+need {
					t.Fatalf("%d blocks wanted, %d taken", need, after-before)
				}
				if ok {
					frames = append(frames, extents)
				}
			}
			n, end := inUse()
			free := int64(0)
			for i, h := range s.holes {
				free += h.bytes / blockBytes
				if h.bytes <= 0 || h.end() >= s.end || i > 0 && s.holes[i-1].end() >= h.at {
					t.Fatalf("holes %v of %d bytes", s.holes, s.end)
				}
			}
			if s.end != end*blockBytes || n+free != end {
				t.Fatalf("%d blocks in use up to %d, %d free, the end is %d", n, end, free, s.end)
			}
		}
	})
}
