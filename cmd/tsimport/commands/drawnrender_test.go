package commands_test

import (
	"bytes"
	"embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	pq "github.com/parquet-go/parquet-go"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"

	"example.com/tsimport/internal/conformance"
)

var tableFormats = []string{"csv", "jsonl", "array", "objects", "parquet"}

type layout struct {
	delimiter, quote string // "" means a comma and double quotes
	encoding         string // "" means UTF-8, "mark" UTF-8 with a byte order mark
	valueFirst       bool   // the key is the last column
}

// write adds a file with the records, which become Typed if the format has types.
func (d *draw) write(name, format string, records []Record, l layout) {
	if format != "csv" {
		for i := range records {
			records[i].Key.Typed = true
			for column, c := range records[i].Cells {
				c.Typed = true
				records[i].Cells[column] = c
			}
		}
	}
	switch format {
	case "csv":
		d.add(name+".csv", encode(l.encoding, d.csv(records, l, d.one("\n", "\r\n"))), records)
	case "parquet":
		d.add(name+".parquet", d.parquet(records), records)
	case "arrow":
		for len(records) < templateRows {
			records = append(records, records[len(records)-1])
		}
		d.add(name+".arrow", d.arrow(records[:templateRows]), records[:templateRows])
	default:
		ending := map[string]string{"jsonl": ".jsonl"}[format]
		if ending == "" {
			ending = ".json"
		}
		d.add(name+ending, d.json(records, format), records)
	}
}

// writeJoined adds a file joined from two parts, with a header or a byte order mark at the seam.
func (d *draw) writeJoined(name string, records []Record) {
	ending := d.one("\n", "\r\n")
	whole := string(d.csv(records, layout{}, ending))
	header, _, _ := strings.Cut(whole, ending)
	cut := 1 + d.IntN(len(records)-1)
	first := d.csvRows(records[:cut], strings.Split(header, ","), ending)
	second := d.csvRows(records[cut:], strings.Split(header, ","), ending)
	seam := Record{Key: words("id"), Reject: true}
	records = slices.Insert(records, cut, seam)
	if d.IntN(3) == 0 {
		header = "\ufeff" + header
	}
	content := header + ending + first + header + ending + second
	if d.IntN(3) == 0 {
		// A file without a header leaves its byte order mark before its first record.
		content = header + ending + first + "\ufeff" + second
		records = slices.Delete(records, cut, cut+1)
		records[cut].Reject = true
	}
	d.add(name+".csv", []byte(content), records)
}

func (d *draw) columns(key string, records []Record, valueFirst bool) []string {
	names := slices.Sorted(maps.Keys(records[0].Cells))
	d.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	if valueFirst {
		return append(names, key)
	}
	return append([]string{key}, names...)
}

func (r *Record) cell(key, column string) Cell {
	if column == key {
		return r.Key
	}
	return r.Cells[column]
}

func (d *draw) csv(records []Record, l layout, ending string) []byte {
	columns := d.columns(d.load.Key, records, l.valueFirst)
	if l.delimiter == "" {
		l.delimiter, l.quote = ",", `"`
	}
	return []byte(d.csvFields(records, columns, l, ending, true))
}

func (d *draw) csvRows(records []Record, columns []string, ending string) string {
	return d.csvFields(records, columns, layout{delimiter: ",", quote: `"`}, ending, false)
}

func (d *draw) csvFields(records []Record, columns []string, l layout, ending string, header bool) string {
	var b strings.Builder
	if header {
		b.WriteString(strings.Join(columns, l.delimiter) + ending)
	}
	for i := range records {
		for j, column := range columns {
			if j > 0 {
				b.WriteString(l.delimiter)
			}
			c := records[i].cell(d.load.Key, column)
			field := spelled(c)
			if c.Kind == Text && (field == "" || d.IntN(4) == 0 || strings.ContainsAny(field, "\r\n"+l.delimiter+l.quote)) {
				field = l.quote + strings.ReplaceAll(field, l.quote, l.quote+l.quote) + l.quote
			}
			b.WriteString(field)
		}
		b.WriteString(ending)
	}
	return b.String()
}

func (d *draw) json(records []Record, format string) []byte {
	var b strings.Builder
	for i := range records {
		columns := d.columns(d.load.Key, records, false)
		members := make([]string, len(columns))
		for j, column := range columns {
			members[j] = strconv.Quote(column) + ":" + spelledJSON(records[i].cell(d.load.Key, column))
		}
		open, between, end := "{", ",", "}"
		if format != "jsonl" {
			open, between, end = "{\n  ", ",\n  ", "\n}"
		}
		if format == "array" && i > 0 {
			b.WriteString(",\n")
		} else if format == "array" {
			b.WriteString("[")
		}
		b.WriteString(open + strings.Join(members, between) + end)
		if format != "array" {
			b.WriteString("\n")
		}
	}
	if format == "array" {
		b.WriteString("]\n")
	}
	return []byte(b.String())
}

func spelledJSON(c Cell) string {
	switch {
	case c.Kind == Null:
		return "null"
	case c.Tag != "":
		return c.Tag
	case c.Kind == Text:
		quoted := conformance.Try(json.Marshal(c.Text)).Must(conformance.Sure{})
		return string(quoted)
	}
	return spelled(c)
}

func (d *draw) parquet(records []Record) []byte {
	columns := d.columns(d.load.Key, records, false)
	group := pq.Group{}
	for _, column := range columns {
		group[column] = pq.Optional(node(records[0].cell(d.load.Key, column)))
	}
	schema := pq.NewSchema("drawn", group)
	var rows []pq.Row
	for i := range records {
		var row pq.Row
		for j, path := range schema.Columns() {
			c := records[i].cell(d.load.Key, path[0])
			v := pq.Int64Value(c.N)
			switch {
			case c.Kind == Text:
				v = pq.ByteArrayValue([]byte(c.Text))
			case c.Kind == Decimal && c.Unit == 0:
				f := conformance.Try(strconv.ParseFloat(c.Text, 64)).Must(conformance.Sure{})
				v = pq.DoubleValue(f)
			case c.Kind == Instant || c.Kind == Local:
				v = pq.Int64Value(c.N / c.Unit)
			}
			row = append(row, v.Level(0, 1, j))
		}
		rows = append(rows, row)
	}
	var b bytes.Buffer
	w := pq.NewWriter(&b, schema)
	conformance.Must(conformance.Sure{}, conformance.ErrorOf(w.WriteRows(rows)))
	conformance.Must(conformance.Sure{}, w.Close())
	return b.Bytes()
}

func node(c Cell) pq.Node {
	switch c.Kind {
	case Text:
		return pq.String()
	case Decimal:
		if c.Unit > 0 {
			return pq.Decimal(int(c.Unit), 18, pq.Int64Type)
		}
		return pq.Leaf(pq.DoubleType)
	case Instant, Local:
		units := map[time.Duration]pq.TimeUnit{time.Millisecond: pq.Millisecond, time.Microsecond: pq.Microsecond,
			time.Nanosecond: pq.Nanosecond}
		return pq.TimestampAdjusted(units[time.Duration(c.Unit)], c.Kind == Instant)
	}
	return pq.Int(64)
}

// templates are files by pyarrow with eight rows and the columns id and v. A file's values replace the keys from
// templateKey on and the values from templateValue on.
//
//go:embed testdata/drawn/*.arrow
var templates embed.FS

const (
	templateRows  = 8
	templateKey   = 7_000_000_000_000_000_001
	templateValue = 8_000_000_000_000_000_001
)

func (d *draw) arrow(records []Record) []byte {
	c := records[0].Cells["v"]
	name := map[Kind]string{Duration: "duration_", Instant: "utc_"}[c.Kind] +
		map[time.Duration]string{time.Second: "s", time.Millisecond: "ms", time.Microsecond: "us",
			time.Nanosecond: "ns"}[time.Duration(c.Unit)]
	file := conformance.Try(templates.ReadFile("testdata/drawn/" + name + ".arrow")).Must(conformance.Sure{})
	file = bytes.Clone(file)
	put := func(sentinel, value int64) {
		at := bytes.Index(file, binary.LittleEndian.AppendUint64(nil, uint64(sentinel)))
		if at < 0 {
			panic(fmt.Sprintf("%s has no %d", name, sentinel))
		}
		binary.LittleEndian.PutUint64(file[at:], uint64(value))
	}
	for i := range templateRows {
		put(templateKey+int64(i), records[i].Key.N)
		put(templateValue+int64(i), records[i].Cells["v"].N/c.Unit)
	}
	return file
}

func encode(name string, text []byte) []byte {
	codings := map[string]encoding.Encoding{
		"": unicode.UTF8, "mark": unicode.UTF8BOM, "utf-16": unicode.UTF16(unicode.LittleEndian, unicode.UseBOM),
		"gb18030": simplifiedchinese.GB18030, "latin1": charmap.ISO8859_1,
	}
	encoded, err := codings[name].NewEncoder().Bytes(text)
	if err != nil {
		panic(fmt.Sprintf("%s cannot hold %q: %v", name, text, err))
	}
	return encoded
}

// compress compresses some files, and returns the extension of their names. Compressed Parquet files are refused.
func (d *draw) compress(content []byte) (string, []byte) {
	if bytes.HasPrefix(content, []byte("PAR1")) {
		return "", content
	}
	var b bytes.Buffer
	switch d.IntN(4) {
	case 0: // in two members, as cat joins files
		cut := rand.New(d).IntN(len(content) + 1)
		for _, part := range [][]byte{content[:cut], content[cut:]} {
			w := gzip.NewWriter(&b)
			conformance.Must(conformance.Sure{}, conformance.ErrorOf(w.Write(part)))
			conformance.Must(conformance.Sure{}, w.Close())
		}
		return ".gz", b.Bytes()
	case 1:
		w := conformance.Try(zstd.NewWriter(nil)).Must(conformance.Sure{})
		return ".zst", w.EncodeAll(content, nil)
	}
	return "", content
}
