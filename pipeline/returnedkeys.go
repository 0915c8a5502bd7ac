package pipeline

import (
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"strconv"

	"tsimport/internal/table"
	"tsimport/internal/tablestore/plainbuffer"
	"tsimport/pipeline/rundir"
)

// returnedKeys are the keys of rows that the service has numbered, in a file of CSV that the user has named. A nil one is
// that of a load of which nobody wants them.
type returnedKeys struct {
	journal *rundir.Journal
	column  int // of the key, that the service numbers
}

// returnedBytes is the counter of a checkpoint for how much of the file it counts on.
const returnedBytes = "returned_bytes"

// openReturnedKeys makes the file, or cuts that of the load that is resumed to what its checkpoint counts on. Another one that
// is there is not touched: it may be the only place where the keys of an earlier load stand.
func openReturnedKeys(path string, key []table.KeyColumn, column int, keep int64) (*returnedKeys, error) {
	if keep > 0 {
		j, err := rundir.OpenExclusive(path, keep)
		if err != nil {
			return nil, err
		}
		return &returnedKeys{j, column}, nil
	}
	header := []string{"file", "record"}
	for _, k := range key {
		header = append(header, k.Name)
	}
	line := csvLine(header)
	j, err := rundir.OpenExclusive(path, 0, func(f *os.File) error {
		if !begunOnly(f, line) {
			return fmt.Errorf("keep returned keys: %s exists; give another file, or delete it", path)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := j.Append(line); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return &returnedKeys{j, column}, nil
}

// begunOnly reports whether a file holds no key: it is not there, or a load was killed when it had written no more than the
// header, or a part of it.
func begunOnly(f *os.File, header []byte) bool {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > int64(len(header)) {
		return false
	}
	text := make([]byte, info.Size())
	_, err = f.ReadAt(text, 0)
	return err == nil && bytes.HasPrefix(header, text)
}

// add takes a row that is written.
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
			fields = append(fields, "") // sent blindly, and the answer did not say
		case i == k.column:
			fields = append(fields, strconv.FormatInt(o.Number, 10))
		case c.Value.Type == table.Integer:
			fields = append(fields, strconv.FormatInt(c.Value.Int, 10))
		case c.Value.Type == table.Binary:
			fields = append(fields, base64.StdEncoding.EncodeToString(c.Value.Bytes))
		default:
			fields = append(fields, string(c.Value.Bytes))
		}
	}
	return k.journal.Append(csvLine(fields))
}

func csvLine(fields []string) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write(fields) // into memory
	w.Flush()
	return b.Bytes()
}
