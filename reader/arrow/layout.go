package arrow

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"

	"example.com/tsimport/reader/record"
)

// Options are options for a file or stream. The zero value means defaults.
type Options struct {
	Flatten       bool  // structs become columns a.b.c instead of JSON text; lists and maps remain JSON
	SplitRows     int64 // maximum number of rows in a split; 0 means 65,536
	MaxMetadata   int64 // maximum size of a message's metadata in bytes; 0 means 64 MiB
	MaxDictionary int64 // maximum total size of all dictionaries in bytes; 0 means no limit
	MaxBody       int64 // maximum size of the body of a stream's batch in bytes; 0 means no limit
}

func (o Options) metadata() int64 { return cmp.Or(o.MaxMetadata, 64<<20) }

// Split is a range of rows of the record batch Group. Splits are in row order.
type Split = record.Rows

type layout struct {
	name    string
	schema  *schema
	names   []string
	columns [][]*field // the path of each column: its enclosing structs and its field
}

func newLayout(name string, s *schema, flatten bool) layout {
	l := layout{name: name, schema: s}
	l.collect(s.fields, nil, "", flatten)
	return l
}

// collect lists the columns: the schema's fields or, if flatten is set, the fields of its structs.
func (l *layout) collect(fields, parents []*field, prefix string, flatten bool) {
	for _, f := range fields {
		path := append(parents[:len(parents):len(parents)], f)
		if flatten && f.typ == typeStruct && f.dict == nil && len(f.fields) > 0 {
			f.opened = true
			l.collect(f.fields, path, prefix+f.name+".", true)
			continue
		}
		l.names = append(l.names, prefix+f.name)
		l.columns = append(l.columns, path)
	}
}

// Columns returns the column names in schema order. Names may repeat.
func (l *layout) Columns() []string { return l.names }

// Measures returns the kind, unit, scale and zone of each column and of the parts of nested ones, from the schema.
func (l *layout) Measures() (all []record.Measures) {
	for _, path := range l.columns {
		of := record.Measures{}
		path[len(path)-1].measure(of, "")
		all = append(all, of)
	}
	return all
}

func (f *field) measure(all record.Measures, path string) {
	if f.typ == typeRuns {
		f = f.fields[1]
	}
	d := record.Datum{Kind: f.kind, Unit: f.unit, Scale: f.scale, Local: f.local}
	if f.flavor == monthsOnly {
		d.Unit = record.Months
	}
	all[path] = d
	if f.typ == typeMap {
		f.fields[0].fields[0].measure(all, path+record.Keys)
		f.fields[0].fields[1].measure(all, path+record.Elements)
		return
	}
	for _, part := range f.fields {
		if f.typ == typeStruct || f.typ == typeUnion {
			part.measure(all, path+"."+part.name)
		} else {
			part.measure(all, path+record.Elements)
		}
	}
}

// takeDictionary returns a copy of old to which the dictionary in a message is added.
func (l *layout) takeDictionary(m message, b body, old map[int64]*dictionary, limit int64) (map[int64]*dictionary,
	error) {
	id := m.head.number(0, 8, 0)
	f := l.schema.byID[id]
	if f == nil {
		return nil, fmt.Errorf("dictionary %d belongs to no column", id)
	}
	data, ok := m.head.child(1)
	if !ok {
		return nil, errMetadata
	}
	meta, err := readBatch(data, m.body, l.schema.version)
	if err != nil {
		return nil, fmt.Errorf("dictionary %d: %w", id, err)
	}
	has := old[id]
	if !m.head.flag(2) {
		if has != nil && b.r != nil {
			return nil, fmt.Errorf("dictionary %d: %w", id, ErrReplaced)
		}
		has = nil
	}
	held := int64(0)
	for other, d := range old {
		if other != id || has != nil {
			held += d.bytes
		}
	}
	before := held
	load := loader{batch: meta, body: b, dicts: old, unpacked: map[int][]byte{}, hold: func(n int64) error {
		if held += n; limit > 0 && held > limit {
			return fmt.Errorf("dictionaries take %d MiB or more, but memory allows %d MiB; give more with --memory, or write "+
				"the columns without dictionaries", held>>20+1, limit>>20)
		}
		return nil
	}}
	if b.r == nil {
		if err := load.hold(m.body); err != nil {
			return nil, err
		}
	}
	v, err := load.alone(f)
	if err != nil {
		return nil, fmt.Errorf("dictionary %d: %w", id, err)
	}
	all := make(map[int64]*dictionary, len(old)+1)
	maps.Copy(all, old)
	all[id] = has.with(v, meta.rows, held-before)
	return all, nil
}

// ErrReplaced is wrapped by errors about a dictionary that occurs twice in a file, which must then be read in order.
var ErrReplaced = errors.New("it is replaced within the file")

// damaged, when deferred, turns a panic during decoding into an error.
func damaged(err *error) {
	switch x := recover().(type) {
	case nil:
	case failure:
		*err = x.error
	default:
		*err = fmt.Errorf("damaged data: %v", x)
	}
}

// unexpected replaces an EOF by an error that says that the file ends within a message.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it is truncated within a message")
	}
	return err
}

func refuseFeather1(head []byte) error {
	if len(head) > 4 && string(head[:4]) == "FEA1" {
		return errors.New("version 1 of Feather is not supported; write version 2, which is Arrow")
	}
	return nil
}
