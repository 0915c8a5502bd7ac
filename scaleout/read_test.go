package scaleout

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"tsimport/reader/source"
)

// counting counts the pieces that are read of a source.
type counting struct {
	source.Source
	pieces, bytes int64
}

func (c *counting) Next() (source.Piece, error) {
	p, err := c.Source.Next()
	if err == nil {
		c.pieces++
		c.bytes += p.Bytes()
	}
	return p, err
}

// TestASplitReadsLittleMoreThanItsBytes reads splits whose ends are anywhere in pieces, and of whose last piece any record may be cut.
func TestASplitReadsLittleMoreThanItsBytes(t *testing.T) {
	for _, size := range []int{41, 97, 500, 3000, 1 << 20} {
		t.Run(fmt.Sprint(size), inJob(func(t *testing.T, w *world) {
			var all, given int64
			must(t, w.start("reader", 3, -1, 0).run(func(ctx context.Context, j *Job) error {
				prepared, err := j.prepare(ctx)
				if err != nil {
					return err
				}
				counts := make([]counting, len(prepared.Plan.Sources))
				for i, s := range prepared.Plan.Sources {
					s.SetSplitBytes(size)
					counts[i].Source = s.Source
					s.Source = &counts[i]
					given += s.About().Bytes
				}
				for i := range j.Plan.Splits {
					err = errors.Join(err, j.ReadSplit(ctx, i))
				}
				for i := range counts {
					all += counts[i].bytes
				}
				if most := given + int64(len(j.Plan.Splits)*size); all > most {
					t.Errorf("%d bytes were read of %d, in pieces of %d", all, given, size)
				}
				return err
			}))
			w.finish()
		}))
	}
}
