package scaleout

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/source"
)

// TestShardsHaveEqualRowsInAnyOrderOfTheInput makes shards of samples of sorted and of shuffled inputs, with more partitions than the sample has
// places: as far as can be told, each shard has as many rows.
func TestShardsHaveEqualRowsInAnyOrderOfTheInput(t *testing.T) {
	key := func(i int) table.Value { return table.Value{Type: table.String, Bytes: fmt.Appendf(nil, "%08d", i)} }
	const rows, places, each = 1_000_000, 64, 40
	for _, partitions := range []int{24, 64, 128, 512} {
		var bounds []table.Value
		for i := range partitions - 1 {
			bounds = append(bounds, key((i+1)*rows/partitions))
		}
		for _, sorted := range []bool{true, false} {
			rnd := rand.New(rand.NewPCG(1, uint64(partitions)))
			sample := make([][]table.Value, places)
			for p := range sample {
				for i := range each {
					if sorted {
						sample[p] = append(sample[p], key(p*rows/places+i))
					} else {
						sample[p] = append(sample[p], key(rnd.IntN(rows)))
					}
				}
			}
			_, shards := shardKeys(bounds, sample, 2)
			conformance.MustEqual(t, len(shards), 2*shardsEach, "%d partitions: shards", partitions)
			weight := 0.0
			for _, s := range shards {
				weight += s.Weight
				share := float64(len(s.Ranges)) * float64(len(shards)) / float64(partitions) // of an equal part
				if share < 0.8 || share > 1.25 {
					t.Errorf("%d partitions, sorted %v: a shard has %d of them", partitions, sorted, len(s.Ranges))
				}
			}
			if math.Abs(weight-1) > 1e-9 {
				t.Errorf("%d partitions, sorted %v: the weights sum up to %v", partitions, sorted, weight)
			}
		}
	}
}

// TestAHeavyPartitionHasAShardOfItsOwn makes shards of a shuffled input of which one partition has a third of the rows.
func TestAHeavyPartitionHasAShardOfItsOwn(t *testing.T) {
	key := func(i int) table.Value { return table.Value{Type: table.Integer, Int: int64(i)} }
	rnd := rand.New(rand.NewPCG(1, 2))
	var bounds []table.Value
	for i := range 99 {
		bounds = append(bounds, key((i+1)*1000))
	}
	sample := make([][]table.Value, 64)
	for p := range sample {
		for range 40 {
			i := rnd.IntN(100_000)
			if rnd.IntN(3) == 0 {
				i = 50_000 + rnd.IntN(1000)
			}
			sample[p] = append(sample[p], key(i))
		}
	}
	_, shards := shardKeys(bounds, sample, 2)
	for _, s := range shards {
		if heavy := s.Weight > 0.3; heavy != (len(s.Ranges) == 1) || heavy && s.Ranges[0] != 50 {
			t.Errorf("a shard of weight %.2f has the ranges %v", s.Weight, s.Ranges)
		}
	}
	if _, shards := shardKeys(bounds, nil, 2); len(shards) != 6 || len(shards[0].Ranges) < 16 {
		t.Errorf("without a sample: %+v", shards)
	}
}

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
