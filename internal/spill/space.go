package spill

import (
	"cmp"
	"slices"
)

// blockBytes is the unit of allocation. Most file systems use the same, so the file's length is its size on disk.
const blockBytes = 4096

// extent is a run of blocks in the file, in bytes.
type extent struct{ at, bytes int64 }

func (e extent) end() int64 { return e.at + e.bytes }

// space tracks the file's used blocks. A frame may be spread over several extents, because frames of slow lanes remain
// for minutes among short-lived ones, and the holes between them would soon be too small for contiguous frames. So the
// file grows only if its holes are used up, and is never larger than the most space used at once.
type space struct {
	holes []extent // in file order; none touches another or the end
	end   int64    // length of the file
	max   int64    // limit of end; 0 means no limit
}

// take allocates extents with a total of bytes, rounded up to blocks: the first hole that is large enough or, if there
// is none, the first holes and then space at the end. It returns false, and takes nothing, if that would exceed max.
func (s *space) take(bytes int) ([]extent, bool) {
	need := (int64(bytes) + blockBytes - 1) / blockBytes * blockBytes
	if need == 0 {
		return nil, true
	}
	for i, h := range s.holes {
		if h.bytes >= need {
			s.cut(i, need)
			return []extent{{h.at, need}}, true
		}
	}
	whole, missing := 0, need // holes[:whole] are used up
	for whole < len(s.holes) && s.holes[whole].bytes <= missing {
		missing -= s.holes[whole].bytes
		whole++
	}
	inHole := whole < len(s.holes) && missing > 0
	if !inHole && s.max > 0 && s.end+missing > s.max {
		return nil, false
	}
	taken := slices.Clone(s.holes[:whole])
	if inHole {
		taken = append(taken, extent{s.holes[whole].at, missing})
		s.cut(whole, missing)
	} else if missing > 0 {
		taken = append(taken, extent{s.end, missing})
		s.end += missing
	}
	s.holes = slices.Delete(s.holes, 0, whole)
	return taken, true
}

// cut removes bytes from the front of a hole.
func (s *space) cut(i int, bytes int64) {
	s.holes[i].at += bytes
	s.holes[i].bytes -= bytes
	if s.holes[i].bytes == 0 {
		s.holes = slices.Delete(s.holes, i, i+1)
	}
}

// give frees extents. If that leaves a hole at the end, it shortens the file.
func (s *space) give(extents []extent) {
	for _, e := range extents {
		i, _ := slices.BinarySearchFunc(s.holes, e, func(h, e extent) int { return cmp.Compare(h.at, e.at) })
		if i < len(s.holes) && s.holes[i].at == e.end() {
			e.bytes += s.holes[i].bytes
			s.holes = slices.Delete(s.holes, i, i+1)
		}
		if i > 0 && s.holes[i-1].end() == e.at {
			i--
			e = extent{s.holes[i].at, s.holes[i].bytes + e.bytes}
			s.holes = slices.Delete(s.holes, i, i+1)
		}
		if e.end() == s.end {
			s.end = e.at
			continue
		}
		s.holes = slices.Insert(s.holes, i, e)
	}
}
