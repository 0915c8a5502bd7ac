package readorder

// Section is a run of consecutive records of one source.
type Section struct {
	Source  int   // ordinal of the source
	Record  int64 // number of the source's records before it
	Records int64
	Line    int64 // number of the source's lines before it
	Lines   int64
	Offset  int64 // offset of its text in the source; 0 if records never were text
	Bytes   int64 // approximate size in the source; exact for text
	Sum     Sum   // sum of its bytes
	// Table is the number, by first appearance, of the rows' table, or of one of these, in a load into several tables.
	Table int32
	// Keys are disjoint intervals, in key order, that hold the ordering keys of all its rows. None means no rows.
	Keys []Interval
}

// Interval is the range of keys from Lower to Upper, both included.
type Interval struct{ Lower, Upper []byte }

// follows reports whether the section comes directly after another one in the same source.
func (s *Section) follows(before *Section) bool {
	return s.Source == before.Source && s.Table == before.Table && s.Record == before.Record+before.Records &&
		s.Offset == before.Offset+before.textBytes()
}

// textBytes returns the distance from the section's offset to the next section's, 0 if records never were text.
func (s *Section) textBytes() int64 {
	if s.Offset == 0 && s.Lines == 0 && s.Line == 0 {
		return 0
	}
	return s.Bytes
}

func (s *Section) join(next *Section) {
	s.Records += next.Records
	s.Lines += next.Lines
	s.Bytes += next.Bytes
	s.Sum.Add(next.Sum)
	s.Keys = joinKeys(s.Keys, next.Keys)
}

// Sum is a sum of bytes that detects changes. Sums of consecutive parts can be combined.
type Sum struct {
	Value uint64
	Bytes int64
}

// factor is odd, so changing a byte always changes the sum.
const factor = 0x9e3779b97f4a7c15

// Powers of factor, for the eight bytes of a step.
const (
	factor2 = factor * factor & (1<<64 - 1)
	factor3 = factor2 * factor & (1<<64 - 1)
	factor4 = factor3 * factor & (1<<64 - 1)
	factor5 = factor4 * factor & (1<<64 - 1)
	factor6 = factor5 * factor & (1<<64 - 1)
	factor7 = factor6 * factor & (1<<64 - 1)
	factor8 = factor7 * factor & (1<<64 - 1)
	ones    = (factor7 + factor6 + factor5 + factor4 + factor3 + factor2 + factor + 1) & (1<<64 - 1)
)

func (s *Sum) Write(p []byte) {
	v := s.Value
	s.Bytes += int64(len(p))
	for ; len(p) >= 8; p = p[8:] {
		// Each byte counts as its value plus one, so that leading zeros are not lost; ones is the sum of these ones. Terms
		// without v are added first, so that the processor need not wait for v.
		first := uint64(p[0])*factor7 + uint64(p[1])*factor6 + uint64(p[2])*factor5 + uint64(p[3])*factor4
		rest := uint64(p[4])*factor3 + uint64(p[5])*factor2 + uint64(p[6])*factor + uint64(p[7]) + ones
		v = v*factor8 + (first + rest)
	}
	for _, b := range p {
		v = v*factor + uint64(b) + 1
	}
	s.Value = v
}

// Add adds the sum of the following bytes.
func (s *Sum) Add(next Sum) {
	power, by := uint64(1), uint64(factor)
	for n := next.Bytes; n > 0; n >>= 1 {
		if n&1 == 1 {
			power *= by
		}
		by *= by
	}
	s.Value = s.Value*power + next.Value
	s.Bytes += next.Bytes
}
