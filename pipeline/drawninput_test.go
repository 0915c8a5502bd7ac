package pipeline

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/checkpoint"
)

// drawnRecord is a record. Its id and n identify its row. "" is an empty field, or null in formats that have nulls.
type drawnRecord struct {
	id      string
	n       int64
	a, b, c string
	ragged  bool // in CSV, it has one field too many, so that the reader rejects it
	file    int  // index of the file that it is written to
	number  int  // number in that file, from 1
}

// name returns a record's name among the rejects.
func (r *drawnRecord) name() string { return fmt.Sprint(r.file, "/", r.number) }

type drawnKey struct {
	name     string
	pk       []string                    // values of --pk
	row      func(r *drawnRecord) string // a record's key as in contents; the first column is the text up to a slash
	columns  []string                    // which of id and n are attributes
	needsID  bool                        // a record without an id has no key
	perID    int64                       // number of rows that share an id
	template string                      // template of the table names; "" means one table
}

var drawnKeys = []drawnKey{
	{name: "plain", pk: []string{"id"}, columns: []string{"n"}, needsID: true, perID: 1,
		row: func(r *drawnRecord) string { return r.id }},
	{name: "two columns", pk: []string{"id", "n:integer"}, needsID: true, perID: fan,
		row: func(r *drawnRecord) string { return fmt.Sprint(r.id, "/", r.n) }},
	{name: "reversed", pk: []string{"k=reverse(id)"}, columns: []string{"id", "n"}, needsID: true, perID: 1,
		row: func(r *drawnRecord) string { return reversed(r.id) }},
	{name: "padded", pk: []string{"k=pad(n, 6)"}, columns: []string{"id", "n"}, perID: 1,
		row: func(r *drawnRecord) string { return fmt.Sprintf("%06d", r.n) }},
	{name: "bucketed", pk: []string{"s=bucket(n, 4)", "id"}, columns: []string{"n"}, needsID: true, perID: 1,
		row: func(r *drawnRecord) string { return fmt.Sprint(r.n%4, "/", r.id) }},
	{name: "several tables", pk: []string{"id"}, columns: []string{"n"}, needsID: true, perID: 1,
		template: "t_{bucket(n, 5)}", row: func(r *drawnRecord) string { return r.id }},
}

func reversed(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// into sets the primary key of a load.
func (k *drawnKey) into(t *testing.T, cfg *trial) {
	cfg.Target.Key = nil
	for _, text := range k.pk {
		col := conformance.Try(keyexpr.ParseColumn(text)).Must(t)
		if col.Expr != "" {
			cfg.Columns.Keys = append(cfg.Columns.Keys, col)
		} else if col.Type == table.Null {
			col.Type = table.String
		}
		cfg.Target.Key = append(cfg.Target.Key, table.KeyColumn{Name: col.Name, Type: col.Type})
	}
}

// cut returns the first column of a record's key, at which a partition may begin.
func (k *drawnKey) cut(r *drawnRecord) sim.Key {
	first, _, _ := strings.Cut(k.row(r), "/")
	return sim.Key(first)
}

// orderingKeys returns the records' ordering keys by place. They are nil for records that cannot become rows.
func (m *drawnLoad) orderingKeys() map[checkpoint.Position][]byte {
	keys := map[checkpoint.Position][]byte{}
	for i := range m.records {
		r := &m.records[i]
		var key []byte
		if m.oracle.makesRow(r) {
			for at, text := range strings.Split(m.key.row(r), "/") {
				v := table.Value{Type: m.cfg.Target.Key[at].Type, Bytes: []byte(text)}
				if v.Type == table.Integer {
					v.Int, _ = strconv.ParseInt(text, 10, 64)
				}
				key = table.AppendKey(key, v)
			}
		}
		keys[checkpoint.At(r.file, int64(r.number-1))] = key
	}
	return keys
}

// fan is the number of rows that share an id if the key consists of id and n.
const fan = 7

// drawnInput generates records whose keys have one arrangement, with disturbances.
type drawnInput struct {
	arrangement                                  string
	keys, records                                int
	unique                                       bool // no key is repeated
	repeats, hot, late, strays, spoiled, refused bool
	perID                                        int64 // number of rows that share an id
	amounts                                      bool  // a, b and n are integers unique to the record
}

var arrangements = []string{"sorted", "descending", "sorted by a prefix", "concatenated", "shuffled"}

// values draws a number for each record. Each number stands for a key, and numbers are in the order of their keys.
func (in *drawnInput) values(rnd *rand.Rand) []int {
	values := make([]int, in.records)
	for i := range values {
		values[i] = i
		if !in.unique && in.repeats {
			values[i] = rnd.IntN(in.keys)
		} else if !in.unique {
			values[i] = i % in.keys
		}
	}
	shuffle := func(part []int) { rnd.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] }) }
	slices.Sort(values)
	switch in.arrangement {
	case "descending":
		slices.Reverse(values)
	case "sorted by a prefix":
		for at := 0; at < len(values); {
			end := at
			for end < len(values) && values[end]/fan == values[at]/fan {
				end++
			}
			shuffle(values[at:end])
			at = end
		}
	case "concatenated":
		shuffle(values)
		for range 1 + rnd.IntN(4) {
			at := rnd.IntN(len(values))
			slices.Sort(values[:at])
			slices.Sort(values[at:])
			at /= 1 + rnd.IntN(3)
			slices.Sort(values[:at])
		}
	case "shuffled":
		shuffle(values)
	}
	return in.disturb(rnd, values)
}

func (in *drawnInput) disturb(rnd *rand.Rand, values []int) []int {
	if in.strays { // one for every few records, so that every piece has one
		for at := rnd.IntN(10); at < len(values); at += 5 + rnd.IntN(20) {
			other := rnd.IntN(len(values))
			if in.unique {
				values[at], values[other] = values[other], values[at]
			} else {
				values[at] = values[other]
			}
		}
	}
	if in.unique {
		return values
	}
	if in.hot { // a run of one key longer than a piece
		at := rnd.IntN(len(values))
		values = slices.Insert(values, at, slices.Repeat([]int{values[at]}, 60+rnd.IntN(200))...)
	}
	if in.late {
		for range 1 + len(values)/20 {
			values = append(values, values[rnd.IntN(len(values))])
		}
	}
	return values
}

// draw makes the records. Each has a different value in column c.
func (in *drawnInput) draw(rnd *rand.Rand, mark string) []drawnRecord {
	values := in.values(rnd)
	records := make([]drawnRecord, len(values))
	for i, v := range values {
		r := &records[i]
		r.id, r.n = fmt.Sprintf("key%05d", int64(v)/in.perID), int64(v)
		if in.perID > 1 {
			r.n = int64(v) % in.perID
		}
		r.c = fmt.Sprintf("%sc%d", mark, i)
		for name, to := range map[string]*string{"a": &r.a, "b": &r.b} {
			if *to = fmt.Sprint(mark, name, i); in.amounts {
				*to = fmt.Sprint(i%2000 - 1000)
			}
		}
		if in.amounts {
			r.n = int64(1 + rnd.IntN(1000))
		}
		if i > 0 && rnd.IntN(3) == 0 { // the first record has all columns
			r.a = ""
		}
		if i > 0 && rnd.IntN(3) == 0 {
			r.b = ""
		}
		switch {
		case i == 0:
		case in.spoiled && rnd.IntN(100) == 0:
			r.id = ""
		case in.spoiled && rnd.IntN(150) == 0:
			r.ragged = true
		case in.refused && rnd.IntN(80) == 0:
			r.b = refusedWord + r.c
		}
	}
	return records
}

// refusedWord is in records that the service refuses.
const refusedWord = "refuse-me-"

// drawnFormats has the formats of a file, repeated by likelihood. In all but csv.gz, the keys of any part can be read.
var drawnFormats = []string{"csv", "csv", "csv", "ndjson", "ndjson", "parquet", "parquet", "parquet", "csv.gz"}

// standardInput is the format of records read once from standard input.
const standardInput = "-"

// write writes records to files of random formats and sets the records' places in these.
func (m *drawnLoad) write(name string, records []drawnRecord, formats []string, most int) (files []string) {
	for file := 0; file == 0 || len(records) > 0; file++ {
		n := len(records)
		if file < most-1 {
			n = min(n, 1+m.rnd.IntN(max(1, n)))
		}
		kind := formats[m.rnd.IntN(len(formats))]
		if kind == standardInput && m.stdin != "" {
			kind = "csv"
		}
		for i := range records[:n] {
			records[i].file, records[i].number = file, i+1
			records[i].ragged = records[i].ragged && kind != "ndjson" && kind != "parquet"
		}
		if n > 0 { // every file has all columns
			first := &records[0]
			if first.ragged = false; m.input.amounts {
				first.a, first.b = "7", "-7"
			}
			if first.a == "" {
				first.a = "a" + first.c
			}
			if first.b == "" {
				first.b = "b" + first.c
			}
		}
		if kind == standardInput {
			m.stdin = drawnCSV(records[:n])
			files = append(files, "-")
		} else {
			files = append(files, m.w.file(fmt.Sprintf("%s%d.%s", name, file, kind), m.text(kind, records[:n])))
		}
		records = records[n:]
	}
	return files
}

func (m *drawnLoad) text(kind string, records []drawnRecord) string {
	switch kind {
	case "ndjson":
		return drawnLines(m.t, records)
	case "parquet":
		return m.parquet(records)
	case "csv.gz":
		var b bytes.Buffer
		to := gzip.NewWriter(&b)
		conformance.Must(m.t, conformance.ErrorOf(to.Write([]byte(drawnCSV(records)))))
		must(m.t, to.Close())
		return b.String()
	}
	return drawnCSV(records)
}

const drawnHeader = "id,n,a,b,c\n"

func drawnCSV(records []drawnRecord) string {
	var b strings.Builder
	b.WriteString(drawnHeader)
	for _, r := range records {
		fmt.Fprintf(&b, "%s,%d,%s,%s,%s", r.id, r.n, r.a, r.b, r.c)
		if r.ragged {
			b.WriteString(",more")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func drawnLines(t *testing.T, records []drawnRecord) string {
	t.Helper()
	var b strings.Builder
	for _, r := range records {
		fields := map[string]any{"n": r.n}
		for name, v := range map[string]string{"id": r.id, "a": r.a, "b": r.b, "c": r.c} {
			if v != "" {
				fields[name] = v
			}
		}
		b.Write(append(conformance.Try(json.Marshal(fields)).Must(t), '\n'))
	}
	return b.String()
}

// parquet writes a Parquet file of several row groups, whose statistics may be false.
func (m *drawnLoad) parquet(records []drawnRecord) string {
	t, rnd := m.t, m.rnd
	t.Helper()
	type row struct {
		ID *string `parquet:"id,optional"`
		N  int64   `parquet:"n"`
		A  *string `parquet:"a,optional"`
		B  *string `parquet:"b,optional"`
		C  string  `parquet:"c"`
	}
	text := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	var b bytes.Buffer
	to := parquet.NewGenericWriter[row](&b, parquet.MaxRowsPerRowGroup(int64(20+rnd.IntN(400))),
		parquet.PageBufferSize(64+rnd.IntN(4000)))
	for _, r := range records {
		conformance.Must(t, conformance.ErrorOf(to.Write([]row{{text(r.id), r.n, text(r.a), text(r.b), r.c}})))
	}
	must(t, to.Close())
	if rnd.IntN(2) == 0 {
		m.lies = true
		return string(lie(t, rnd, b.Bytes()))
	}
	return b.String()
}

// lie falsifies the minima and maxima of columns in the footer of a Parquet file.
func lie(t *testing.T, rnd *rand.Rand, file []byte) []byte {
	t.Helper()
	footer, at := parquetFooter(t, file)
	for g := range footer.RowGroups {
		for c := range footer.RowGroups[g].Columns {
			s := &footer.RowGroups[g].Columns[c].MetaData.Statistics
			if rnd.IntN(2) == 0 && len(s.MinValue) > 0 {
				s.MaxValue = s.MinValue // as if all values were the smallest
				s.Max = s.Min
			} else if rnd.IntN(2) == 0 {
				s.MinValue, s.MaxValue = s.MaxValue, s.MinValue
				s.Min, s.Max = s.Max, s.Min
			}
		}
	}
	text := conformance.Try(thrift.Marshal(new(thrift.CompactProtocol), *footer)).Must(t)
	out := append(slices.Clone(file[:at]), text...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(text)))
	return append(out, "PAR1"...)
}

// damageParquet overwrites pages but keeps the file's size and time, as a failing disk would.
func damageParquet(t *testing.T, name string) {
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Error(err)
		return
	}
	defer file.Close()
	was, err := file.Stat()
	if err != nil {
		t.Error(err)
		return
	}
	text, err := io.ReadAll(file)
	if err != nil {
		t.Error(err)
		return
	}
	footer, _ := parquetFooter(t, text)
	group := footer.RowGroups[len(footer.RowGroups)/2]
	for _, c := range group.Columns {
		if _, err := file.WriteAt(bytes.Repeat([]byte{0xff}, 16), c.MetaData.DataPageOffset); err != nil {
			t.Error(err)
		}
	}
	conformance.Equal(t, os.Chtimes(name, was.ModTime(), was.ModTime()), nil, "Chtimes")
}

func cutShort(t *testing.T, name string) {
	was, err := os.Stat(name)
	if err == nil {
		err = os.Truncate(name, was.Size()/2)
	}
	conformance.Equal(t, err, nil, "error")
}

// parquetFooter returns the footer of a file and the offset where it begins.
func parquetFooter(t *testing.T, file []byte) (footer *format.FileMetaData, at int) {
	const tail = 8 // the footer's length and the magic
	length := int(binary.LittleEndian.Uint32(file[len(file)-tail:]))
	at, footer = len(file)-tail-length, new(format.FileMetaData)
	conformance.Equal(t, thrift.Unmarshal(new(thrift.CompactProtocol), file[at:at+length], footer), nil, "Unmarshal")
	return footer, at
}
