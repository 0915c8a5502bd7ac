package verify

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/exactcsv"
	"example.com/tsimport/internal/extsort"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/jsonl"
	"example.com/tsimport/reader/record"
)

// returned maps records to the keys that the service generated in a load. nil means that records have complete keys.
type returned struct {
	name   string
	sorted *extsort.Sorted
	it     *extsort.Iterator
	more   bool
	at     []byte        // the key to find in sorted
	old    *jsonl.Parser // nil if there are no old keys
	key    []table.Type  // types of the old key's columns
}

// appendPlace appends a source's ordinal and a record's number, from 1, in sortable form.
func appendPlace(dst []byte, source int, record int64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(dst, uint32(source)), uint64(record))
}

// readReturned reads the file of returned keys, which may be larger than the memory.
func (v *verifier) readReturned() error {
	if v.plan.Schema.Numbered == 0 {
		return nil
	}
	f, err := os.Open(v.cfg.Returned)
	if err != nil {
		return plan.Usagef("--returned-keys: %v", err)
	}
	defer f.Close()
	sorter, err := v.sorter()
	if err != nil {
		return err
	}
	v.returned = v.newReturned()
	err = v.sortReturned(exactcsv.NewReader(f), sorter)
	if err == nil {
		v.returned.sorted, err = sorter.Sort()
	}
	if err != nil {
		v.returned = nil
		return errors.Join(err, sorter.Close())
	}
	v.returned.it = v.returned.sorted.Range(nil, nil)
	v.returned.more = v.returned.it.Next()
	return nil
}

func (v *verifier) newReturned() *returned {
	r := &returned{name: v.cfg.Returned}
	names := v.plan.OldKey()
	if names == nil {
		return r
	}
	r.old = jsonl.NewParser(jsonl.Options{Columns: names, Wide: true})
	for _, k := range v.plan.Sources[0].About().Unique {
		r.key = append(r.key, keyTypes[k.Kind])
	}
	return r
}

var keyTypes = map[record.Kind]table.Type{record.Integer: table.Integer, record.String: table.String,
	record.Binary: table.Binary}

func (v *verifier) sortReturned(lines *csv.Reader, sorter *extsort.Sorter) error {
	lines.ReuseRecord = true
	key := v.plan.Schema.Key
	header, err := lines.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return plan.Usagef("--returned-keys %s: %v", v.cfg.Returned, err)
	}
	want := v.plan.ReturnedHeader()
	if !slices.Equal(header, want) {
		return plan.Usagef("--returned-keys %s: not a file of returned keys of this table: its header is %q, want %q",
			v.cfg.Returned, header, want)
	}
	oldKey := make([]table.KeyColumn, len(v.returned.key))
	for i := range oldKey {
		oldKey[i] = table.KeyColumn{Name: want[2+len(key)+i], Type: v.returned.key[i]}
	}
	sources := map[string]int{}
	for i, s := range v.plan.Sources {
		sources[s.Name] = i
	}
	var place, ordering []byte
	others := int64(0)
	for {
		fields, err := lines.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return plan.Usagef("--returned-keys %s: %v", v.cfg.Returned, err)
		}
		source, ok := sources[fields[0]]
		if !ok && len(oldKey) == 0 {
			others++
			continue
		}
		record, err := strconv.ParseInt(fields[1], 10, 64)
		if err == nil {
			ordering, err = orderingKeyOf(ordering[:0], key, fields[2:])
		}
		if err == nil && len(oldKey) > 0 {
			place, err = orderingKeyOf(place[:0], oldKey, fields[2+len(key):])
		} else {
			place = appendPlace(place[:0], source, record)
		}
		if err != nil {
			line, _ := lines.FieldPos(0)
			return plan.Usagef("--returned-keys %s, line %d: %v", v.cfg.Returned, line, err)
		}
		if ordering == nil {
			continue // the response had no key
		}
		if err := sorter.Add(place, ordering); err != nil {
			return err
		}
	}
	if others > 0 {
		v.result.Notes = append(v.result.Notes,
			fmt.Sprintf("%d keys in %s belong to other inputs; name the inputs exactly as in the load",
				others, v.cfg.Returned))
	}
	return nil
}

// orderingKeyOf parses the fields of a key that a load wrote. It returns nil if the generated value is unknown.
func orderingKeyOf(dst []byte, key []table.KeyColumn, fields []string) ([]byte, error) {
	for i, k := range key {
		v := table.Value{Type: k.Type}
		var err error
		switch {
		case k.Auto && fields[i] == "":
			return nil, nil
		case k.Type == table.Integer:
			v.Int, err = strconv.ParseInt(fields[i], 10, 64)
		case k.Type == table.Binary:
			v.Bytes, err = base64.StdEncoding.DecodeString(fields[i])
		default:
			v.Bytes = []byte(fields[i])
		}
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", k.Name, err)
		}
		dst = table.AppendKey(dst, v)
	}
	return dst, nil
}

// of returns the key of a record, or nil if the file lacks it. Records must be requested in the order of sorted.
func (r *returned) of(ref table.Ref, record int64, own []byte) (_ []byte, err error) {
	s := ref.Block.Split
	if r.old == nil {
		r.at = appendPlace(r.at[:0], s.Ordinal, record)
	} else if r.at, err = r.oldKey(r.at[:0], ref); err != nil {
		return nil, fmt.Errorf("record %d of %s: %w", record, s.Source, err)
	}
	for r.more && bytes.Compare(r.it.Key(), r.at) < 0 {
		r.more = r.it.Next()
	}
	if !r.more || !bytes.Equal(r.it.Key(), r.at) {
		return nil, r.it.Err()
	}
	if key := r.it.Value(); bytes.HasPrefix(key, own) {
		return key, nil
	}
	return nil, fmt.Errorf("record %d of %s does not match its key in %s: the input has changed since it was loaded",
		record, s.Source, r.name)
}

// oldKey appends the old key of a row, which its record contains.
func (r *returned) oldKey(dst []byte, ref table.Ref) ([]byte, error) {
	r.old.Reset(ref.Record())
	rec, ok := r.old.Next()
	if !ok || rec.Bad != nil || len(rec.Fields) < len(r.key) {
		return nil, errors.New("the old key cannot be parsed")
	}
	for i, t := range r.key {
		d := &rec.Fields[i]
		if d.None() {
			return nil, errors.New("a column of the old key is missing")
		}
		dst = table.AppendKey(dst, table.Value{Type: t, Int: d.Int, Bytes: d.Bytes})
	}
	return dst, nil
}

func (r *returned) close() error {
	if r == nil {
		return nil
	}
	return r.sorted.Close()
}

// unmarked removes the mark from a row that was loaded with one.
func (v *verifier) unmarked(row *scan.Row) *scan.Row {
	if v.plan.Mark != "" && row != nil {
		row.Columns = slices.DeleteFunc(row.Columns,
			func(c *tablestore.AttributeColumn) bool { return c.ColumnName == v.plan.Mark })
	}
	return row
}
