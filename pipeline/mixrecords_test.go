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
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// mixRecord is a record of a drawn input: the columns id and n say which row it is of, a, b and c are attributes. An empty text
// is an empty field, or none in formats that have nulls.
type mixRecord struct {
	id      string
	n       int64
	a, b, c string
	ragged  bool // CSV: it has a field too many, so that the reader rejects it
	file    int  // where it is written
	number  int  // from 1 in that file
}

// fan is how many rows share an id where the key is made of id and n.
const fan = 7

// mix is what an input is drawn from: one arrangement of keys, and what is thrown into it.
type mix struct {
	arrangement                string
	keys, records              int
	unique                     bool // no key comes twice
	repeats, hot, late, strays bool
	spoiled, refused           bool
	perID                      int64 // rows that share an id
}

var arrangements = []string{"sorted", "descending", "sorted by a prefix", "concatenated", "shuffled"}

// values draws the records' numbers: each stands for a key, and greater ones for greater keys.
func (m *mix) values(rnd *rand.Rand) []int {
	values := make([]int, m.records)
	for i := range values {
		values[i] = i
		if !m.unique && m.repeats {
			values[i] = rnd.IntN(m.keys)
		} else if !m.unique {
			values[i] = i % m.keys
		}
	}
	shuffle := func(part []int) { rnd.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] }) }
	slices.Sort(values)
	switch m.arrangement {
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
	return m.disturb(rnd, values)
}

// disturb breaks the arrangement.
func (m *mix) disturb(rnd *rand.Rand, values []int) []int {
	if m.strays { // one in every stretch of a few records, so that every piece has one
		for at := rnd.IntN(10); at < len(values); at += 5 + rnd.IntN(20) {
			other := rnd.IntN(len(values))
			if m.unique {
				values[at], values[other] = values[other], values[at]
			} else {
				values[at] = values[other]
			}
		}
	}
	if m.unique {
		return values
	}
	if m.hot { // one key for longer than a piece
		at := rnd.IntN(len(values))
		values = slices.Insert(values, at, slices.Repeat([]int{values[at]}, 60+rnd.IntN(200))...)
	}
	if m.late {
		for range 1 + len(values)/20 {
			values = append(values, values[rnd.IntN(len(values))])
		}
	}
	return values
}

// draw makes the records. The cells of a record say which one it is: no two have the same.
func (m *mix) draw(rnd *rand.Rand, mark string) []mixRecord {
	values := m.values(rnd)
	records := make([]mixRecord, len(values))
	for i, v := range values {
		r := &records[i]
		r.id, r.n = fmt.Sprintf("key%05d", int64(v)/m.perID), int64(v)
		if m.perID > 1 {
			r.n = int64(v) % m.perID
		}
		r.c = fmt.Sprintf("%sc%d", mark, i)
		if rnd.IntN(3) > 0 {
			r.a = fmt.Sprintf("%sa%d", mark, i)
		}
		if rnd.IntN(3) > 0 {
			r.b = fmt.Sprintf("%sb%d", mark, i)
		}
		switch {
		case m.spoiled && rnd.IntN(100) == 0:
			r.id = ""
		case m.spoiled && rnd.IntN(150) == 0:
			r.ragged = true
		case m.refused && rnd.IntN(80) == 0:
			r.b = refusedWord + r.c
		}
	}
	if len(records) > 0 { // the first one shows all columns
		records[0].a, records[0].b = mark+"a0", mark+"b0"
	}
	return records
}

// refusedWord is in records that the service refuses.
const refusedWord = "refuse-me-"

// mixFormats are how a file can be written, the more often the likelier. Of all but csv.gz the keys of any part can be read.
var mixFormats = []string{"csv", "csv", "csv", "ndjson", "ndjson", "parquet", "parquet", "parquet", "csv.gz"}

// writeMix writes records to files of drawn formats and notes where each stands.
func (w *world) writeMix(rnd *rand.Rand, name string, records []mixRecord, formats []string, most int) (files []string) {
	w.t.Helper()
	for file := 0; file == 0 || len(records) > 0; file++ {
		n := len(records)
		if file < most-1 {
			n = min(n, 1+rnd.IntN(max(1, n)))
		}
		kind := formats[rnd.IntN(len(formats))]
		for i := range records[:n] {
			records[i].file, records[i].number = file, i+1
			records[i].ragged = records[i].ragged && strings.HasPrefix(kind, "csv")
		}
		if n > 0 { // every file shows all columns
			records[0].ragged = false
			if records[0].a == "" {
				records[0].a = "a" + records[0].c
			}
			if records[0].b == "" {
				records[0].b = "b" + records[0].c
			}
		}
		files = append(files, w.file(fmt.Sprintf("%s%d.%s", name, file, kind), w.mixText(rnd, kind, records[:n])))
		records = records[n:]
	}
	return files
}

func (w *world) mixText(rnd *rand.Rand, kind string, records []mixRecord) string {
	t := w.t
	t.Helper()
	switch kind {
	case "ndjson":
		return mixLines(t, records)
	case "parquet":
		return w.mixParquet(rnd, records)
	case "csv.gz":
		var b bytes.Buffer
		to := gzip.NewWriter(&b)
		if _, err := to.Write([]byte(mixCSV(records))); err != nil {
			t.Fatal(err)
		}
		if err := to.Close(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	return mixCSV(records)
}

func mixCSV(records []mixRecord) string {
	var b strings.Builder
	b.WriteString("id,n,a,b,c\n")
	for _, r := range records {
		fmt.Fprintf(&b, "%s,%d,%s,%s,%s", r.id, r.n, r.a, r.b, r.c)
		if r.ragged {
			b.WriteString(",more")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func mixLines(t *testing.T, records []mixRecord) string {
	t.Helper()
	var b strings.Builder
	for _, r := range records {
		fields := map[string]any{"n": r.n}
		for name, v := range map[string]string{"id": r.id, "a": r.a, "b": r.b, "c": r.c} {
			if v != "" {
				fields[name] = v
			}
		}
		line, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	return b.String()
}

// mixParquet writes a Parquet file of several row groups whose statistics may say anything.
func (w *world) mixParquet(rnd *rand.Rand, records []mixRecord) string {
	t := w.t
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
	to := parquet.NewGenericWriter[row](&b, parquet.MaxRowsPerRowGroup(int64(20+rnd.IntN(400))), parquet.PageBufferSize(64+rnd.IntN(4000)))
	for _, r := range records {
		if _, err := to.Write([]row{{text(r.id), r.n, text(r.a), text(r.b), r.c}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	if rnd.IntN(2) == 0 {
		w.lies.Add(1)
		return string(lie(t, rnd, b.Bytes()))
	}
	return b.String()
}

// lie changes what the footer of a Parquet file says of the least and greatest values of its columns.
func lie(t *testing.T, rnd *rand.Rand, file []byte) []byte {
	t.Helper()
	footer, at := parquetFooter(t, file)
	for g := range footer.RowGroups {
		for c := range footer.RowGroups[g].Columns {
			s := &footer.RowGroups[g].Columns[c].MetaData.Statistics
			if rnd.IntN(2) == 0 && len(s.MinValue) > 0 {
				s.MaxValue = s.MinValue // as if all values were the least
				s.Max = s.Min
			} else if rnd.IntN(2) == 0 {
				s.MinValue, s.MaxValue = s.MaxValue, s.MinValue
				s.Min, s.Max = s.Max, s.Min
			}
		}
	}
	text, err := thrift.Marshal(new(thrift.CompactProtocol), *footer)
	if err != nil {
		t.Fatal(err)
	}
	out := append(slices.Clone(file[:at]), text...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(text)))
	return append(out, "PAR1"...)
}

// damageParquet overwrites pages in the middle of a file, and leaves its size and time as they are: a disk does not say what it
// has lost.
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
		if _, err := file.WriteAt(bytes.Repeat([]byte{0xff}, 16), c.MetaData.DataPageOffset); err != nil { // no head of a page
			t.Error(err)
		}
	}
	if err := os.Chtimes(name, was.ModTime(), was.ModTime()); err != nil {
		t.Error(err)
	}
}

// cutShort cuts off the second half of a file.
func cutShort(t *testing.T, name string) {
	was, err := os.Stat(name)
	if err == nil {
		err = os.Truncate(name, was.Size()/2)
	}
	if err != nil {
		t.Error(err)
	}
}

// parquetFooter reads what a file says of itself, and where that begins.
func parquetFooter(t *testing.T, file []byte) (footer *format.FileMetaData, at int) {
	const tail = 8 // the footer's length and the magic
	length := int(binary.LittleEndian.Uint32(file[len(file)-tail:]))
	at, footer = len(file)-tail-length, new(format.FileMetaData)
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), file[at:at+length], footer); err != nil {
		t.Error(err)
	}
	return footer, at
}
