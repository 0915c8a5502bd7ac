package scaleout

import (
	"context"
	"fmt"

	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/source"
)

// Split sizes in input bytes. Each process gets several splits, losing one costs little, and their number is limited.
const (
	leastSplit      = 64 << 10
	mostSplit       = 256 << 20
	splitsEach      = 8 // per process, if the inputs are large enough
	mostSplits      = 1 << 20
	manySplits      = 20_000 // above this number splits become larger
	wholeUpTo       = 3      // sources of at most this many halves of a split are read whole
	unknownAsPieces = 1 << 30
	stretchBytes    = 4 << 20 // of the scan for record boundaries
)

// splitSize returns the target size of a split in bytes.
func splitSize(total int64, workers int, given int64) int64 {
	if given > 0 {
		return given
	}
	size := min(max(total/int64(workers*splitsEach), leastSplit), mostSplit)
	return max(size, total/manySplits)
}

// divide divides the inputs into splits. It cuts only large sources with random access, at record boundaries.
func divide(ctx context.Context, p *plan.Plan, size int64, say words.Say) (splits []Split, err error) {
	var group Split
	flush := func() {
		if len(group.Parts) > 0 {
			splits = append(splits, group)
		}
		group = Split{}
	}
	for i, s := range p.Sources {
		about := s.About()
		bytes := about.Bytes
		if bytes < 0 {
			bytes = unknownAsPieces
		}
		if about.Live { // a range of keys with an unknown number of bytes
			flush()
			splits = append(splits, Split{Parts: []Part{{Source: i, Records: -1}}})
			continue
		}
		if about.Seeking == source.SeeksByReading || bytes*2 <= size*wholeUpTo {
			if group.Bytes+bytes > size {
				flush()
			}
			group.Parts = append(group.Parts, Part{Source: i, Records: -1})
			group.Bytes += bytes
			continue
		}
		flush()
		say.Line("scanning %s for record boundaries", s.Name)
		parts, err := divideSource(ctx, p, i, size)
		if err != nil {
			return nil, err
		}
		splits = append(splits, parts...)
	}
	flush()
	if len(splits) > mostSplits {
		return nil,
			&plan.UsageError{Message: fmt.Sprintf("the inputs make %d splits, but a job can have at most %d; load fewer inputs "+
				"at a time", len(splits), mostSplits)}
	}
	return splits, nil
}

func divideSource(ctx context.Context, p *plan.Plan, ordinal int, size int64) (splits []Split, err error) {
	alone, err := p.Part(ordinal, source.Place{})
	if err != nil {
		return nil, err
	}
	alone.Sources[0].SetSplitBytes(int(min(size, stretchBytes)))
	stretches, err := intake.Outline(ctx, alone)
	if err != nil {
		return nil, err
	}
	for _, s := range stretches {
		if n := len(splits); n > 0 && splits[n-1].Bytes+s.Bytes <= size {
			splits[n-1].Parts[0].Records += s.Records
			splits[n-1].Bytes += s.Bytes
			continue
		}
		splits = append(splits, Split{Bytes: s.Bytes, Parts: []Part{{Source: ordinal, Record: s.From.Record,
			Line: s.From.Line, Offset: s.From.Offset, Records: s.Records}}})
	}
	if n := len(splits); n > 0 {
		first := &splits[0].Parts[0]
		first.Record, first.Line, first.Offset = 0, 0, 0 // the source itself determines its beginning
		splits[n-1].Parts[0].Records = -1                // up to the end, including bytes after the last record
	}
	return splits, alone.Sources[0].Suspend()
}
