package verify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"

	"example.com/tsimport/internal/extsort"
	"example.com/tsimport/internal/spill"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/plan"
)

// Keys holds the sorted, distinct keys of records. Close removes the files.
type Keys struct {
	*extsort.Sorted
	Count int64
	Sum   string // identifies the keys
}

// SortKeys sorts the keys of inputs, read as by a load. A record without a valid key is an error, not silently omitted.
func SortKeys(ctx context.Context, request *plan.Request, memory int64, tempDir string) (*Keys, error) {
	request.Keep = plan.KeepKey
	p, err := plan.Make(ctx, request, nil)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	sorter, err := extsort.New(extsort.Options{Memory: max(memory/3, 1), Spill: spill.Options{Dir: tempDir}})
	if err != nil {
		return nil, err
	}
	err = eachSplit(ctx, p, intake.Sums{}, func(parsed *intake.Parsed) error {
		if len(parsed.Rejects) > 0 {
			r := parsed.Rejects[0]
			return plan.Usagef("%s, record %d, column %s: %s; correct the file", parsed.Split.Source,
				parsed.Split.FirstRecord+int64(r.Span.Record)+1, r.Reason.Column, r.Reason.Message)
		}
		for _, b := range parsed.Blocks {
			for i := range b.Block.Rows {
				if err := sorter.Add(table.Ref{Block: b.Block, Index: int32(i)}.Key(), nil); err != nil {
					return err
				}
			}
		}
		return nil
	})
	k := new(Keys)
	if err == nil {
		k.Sorted, err = sorter.Sort()
	}
	if err != nil {
		return nil, errors.Join(err, sorter.Close())
	}
	sum := sha256.New()
	for key, err := range k.From(nil) {
		if err != nil {
			return nil, errors.Join(err, k.Close())
		}
		k.Count++
		fmt.Fprintf(sum, "%d ", len(key))
		sum.Write(key)
	}
	k.Sum = hex.EncodeToString(sum.Sum(nil))
	return k, nil
}

// From returns the keys at or after first. Each is valid until the next one is returned.
func (k *Keys) From(first []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		it, last := k.Range(first, nil), []byte(nil)
		for begun := false; it.Next(); begun = true {
			if begun && bytes.Equal(it.Key(), last) {
				continue
			}
			last = append(last[:0], it.Key()...)
			if !yield(last, nil) {
				return
			}
		}
		if it.Err() != nil {
			yield(nil, it.Err())
		}
	}
}
