package ledger

import (
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"strconv"

	"example.com/tsimport/internal/atomicfile"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/jsonl"
	"example.com/tsimport/reader/record"
)

// returnedKeys keeps the keys of rows numbered by the service in the user's CSV file. It is nil if there is none.
type returnedKeys struct {
	journal *rundir.Journal
	column  int // position, in the key, of the column that the service numbers
	// old, if not nil, reads the records of rows that had another key, whose columns follow those of the new one.
	old     *jsonl.Parser
	columns int // number of columns of the old key
}

func newReturnedKeys(j *rundir.Journal, p *plan.Plan) *returnedKeys {
	k := &returnedKeys{journal: j, column: p.Schema.Numbered}
	if old := p.OldKey(); old != nil {
		k.old, k.columns = jsonl.NewParser(jsonl.Options{Columns: old, Wide: true}), len(old)
	}
	return k
}

// ReturnedBytes names the checkpoint counter for the length of the file of returned keys.
const ReturnedBytes = "returned_bytes"

// OpenReturnedKeys creates the file or, for a resumed load, truncates it to the length keep, which the checkpoint
// expects. It refuses any other existing file, which may be the only one with the keys of an earlier load.
func OpenReturnedKeys(path string, p *plan.Plan, keep int64) (*returnedKeys, error) {
	place, err := atomicfile.Find(path)
	if err == nil && place.Stream {
		err = &atomicfile.RefusedError{Path: path, Why: "is not a file, but a resumed load reads the keys again; name a file"}
	}
	if err != nil {
		return nil, fmt.Errorf("store returned keys: %w", err)
	}
	path = place.Path
	if keep > 0 {
		j, err := rundir.OpenExclusive(path, keep)
		if err != nil {
			return nil, err
		}
		return newReturnedKeys(j, p), nil
	}
	line := csvLine(p.ReturnedHeader())
	j, err := rundir.OpenExclusive(path, 0, func(f *os.File) error {
		if !begunOnly(f, line) {
			return &plan.UsageError{Message: fmt.Sprintf("store returned keys: %s exists; name another file or delete it", path)}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := j.Append(line); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return newReturnedKeys(j, p), nil
}

// begunOnly reports whether an existing file holds no key, because a killed load has written at most the header.
func begunOnly(f *os.File, header []byte) bool {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > int64(len(header)) {
		return false
	}
	text := make([]byte, info.Size())
	_, err = f.ReadAt(text, 0)
	return err == nil && bytes.HasPrefix(header, text)
}

func (k *returnedKeys) add(r table.Ref, o table.Outcome) error {
	if k == nil {
		return nil
	}
	row, err := plainbuffer.Decode(r.Body())
	if err != nil {
		return err
	}
	fields := []string{r.Block.Split.Source, strconv.FormatInt(r.Number()+1, 10)}
	for i, c := range row.Key {
		switch {
		case i == k.column && o.Number == 0:
			fields = append(fields, "") // the row was repeated without a mark, and the answer lacked its number
		case i == k.column:
			fields = append(fields, strconv.FormatInt(o.Number, 10))
		default:
			fields = append(fields, keyField(c.Value.Type == table.Integer, c.Value.Type == table.Binary, c.Value.Int,
				c.Value.Bytes))
		}
	}
	if k.old != nil {
		if fields, err = k.appendOld(fields, r); err != nil {
			return err
		}
	}
	return k.journal.Append(csvLine(fields))
}

// appendOld appends the row's old key, which its record has.
func (k *returnedKeys) appendOld(fields []string, r table.Ref) ([]string, error) {
	k.old.Reset(r.Record())
	rec, ok := k.old.Next()
	if !ok || rec.Bad != nil || len(rec.Fields) < k.columns {
		return nil, fmt.Errorf("store returned keys: record %d of %s has a bad old key", r.Number()+1, r.Block.Split.Source)
	}
	for i := range rec.Fields[:k.columns] {
		d := &rec.Fields[i]
		if d.None() {
			return nil, fmt.Errorf("store returned keys: record %d of %s lacks part of its old key", r.Number()+1,
				r.Block.Split.Source)
		}
		fields = append(fields, keyField(d.Kind == record.Integer, d.Kind == record.Binary, d.Int, d.Bytes))
	}
	return fields, nil
}

func keyField(integer, binary bool, n int64, text []byte) string {
	switch {
	case integer:
		return strconv.FormatInt(n, 10)
	case binary:
		return base64.StdEncoding.EncodeToString(text)
	}
	return string(text)
}

func csvLine(fields []string) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write(fields) // writes to memory
	w.Flush()
	return b.Bytes()
}
