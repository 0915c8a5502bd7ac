package parquet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// page returns an uncompressed page, built from header and body.
func page(kind int32, values, encoding int32, levels [2]int, body []byte) []byte {
	var b []byte
	number := func(step byte, v int32) {
		b = append(b, step<<4|5)
		b = binary.AppendUvarint(b, uint64(uint32(v<<1^v>>31)))
	}
	number(1, kind)
	number(1, int32(len(body)))
	number(1, int32(len(body)))
	b = append(b, (map[int32]byte{pageData: 5, pageDictionary: 7, pageDataV2: 8}[kind]-3)<<4|12)
	number(1, values)
	switch kind {
	case pageDataV2:
		number(1, 0)
		number(1, values) // a wrong number of rows, which the reader must not use
		number(1, encoding)
		number(1, int32(levels[1]))
		number(1, int32(levels[0]))
		b = append(b, 1<<4|2) // not compressed
	case pageData:
		number(1, encoding)
		number(1, encRLE)
		number(1, encRLE)
	default:
		number(1, encoding)
	}
	return append(append(append(b, 0), 0), body...)
}

// handmade returns a file with one column and these pages.
func handmade(t *testing.T, schema []element, rows, entries int64, pages ...[]byte) *File {
	t.Helper()
	data := append([]byte("PAR1"), bytes.Join(pages, nil)...)
	chunk := chunkMeta{physical: schema[len(schema)-1].physical, values: entries, data: 4, bytes: int64(len(data) - 4)}
	groups := []rowGroup{{columns: []chunkMeta{chunk}, rows: rows, bytes: chunk.bytes}}
	f := &File{name: "x.parquet", r: bytes.NewReader(append(data, make([]byte, 200)...)),
		footer: &footer{rows: rows, schema: schema, start: int64(len(data)), groups: groups}}
	must(t, f.prepare(Options{SplitRows: 2}))
	return f
}

func rootOf(n int32) element {
	return element{name: "schema", children: n, converted: -1, physical: -1}
}

func leafOf(p physical, repetition int32) element {
	return element{name: "c", physical: p, leaf: true, repetition: repetition, converted: -1}
}

// texts returns the values of a one-column file as text. Reading each split on its own must give the same values.
func texts(f *File) (out []string, err error) {
	p := f.NewParser([]int{0})
	defer p.Close()
	for _, s := range f.Splits() {
		if err := p.Parse(s, func(r *record.Record) error {
			d := r.Fields[0]
			switch {
			case r.Bad != nil:
				out = append(out, "bad "+r.Bad.Code)
			case d.Kind == record.Null:
				out = append(out, "-")
			case d.Kind == record.JSON, d.Kind == record.Binary, d.Kind == record.String:
				out = append(out, string(d.Bytes))
			default:
				out = append(out, fmt.Sprint(d.Int))
			}
			return nil
		}); err != nil {
			return out, err
		}
	}
	return out, nil
}

func plain32(v ...int32) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	return b
}

func plainText(v ...string) (b []byte) {
	for _, x := range v {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(x))), x...)
	}
	return b
}

// levels returns the levels of a v1 page, preceded by their length.
func levels(runs ...byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(runs))), runs...)
}

func join(b ...[]byte) []byte { return bytes.Join(b, nil) }

func TestPageContainsExactlyItsValues(t *testing.T) {
	none := [2]int{}
	flat := []element{rootOf(1), leafOf(physInt32, required)}
	maybe := []element{rootOf(1), leafOf(physInt32, optional)}
	text := []element{rootOf(1), leafOf(physByteArray, required)}
	flags := []element{rootOf(1), leafOf(physBoolean, required)}
	dictionary := page(pageDictionary, 2, encPlain, none, plain32(7, 8))
	lone := page(pageDictionary, 1, encPlain, none, plain32(7))
	delta := []byte{0x80, 0x01, 0x04, 3, 2, 2, 0, 0, 0, 0} // 1, 2, 3: blocks of 128 in 4; 3 values, from 1, step 1, 0 bits
	type pages = [][]byte
	data := func(n, encoding int32, body []byte) []byte { return page(pageData, n, encoding, none, body) }
	for _, c := range []struct {
		name   string
		schema []element
		rows   int64
		pages  [][]byte
		want   string // the values, or the error
	}{
		{"plain", flat, 2, pages{data(2, encPlain, plain32(1, 2))}, "1 2"},
		{"a value too many", flat, 2, pages{data(2, encPlain, plain32(1, 2, 3))}, "holds more"},
		{"a byte too many", flat, 2, pages{data(2, encPlain, append(plain32(1, 2), 0))}, "holds more"},
		{"a value too few", flat, 2, pages{data(2, encPlain, plain32(1))}, "holds fewer"},
		{"a text cut short", text, 1, pages{data(1, encPlain, append(plainText("ab"), 'c'))}, "holds more"},
		{"a level made null", maybe, 3, pages{data(3, encPlain, join(levels(3, 0b101), plain32(1, 2, 3)))}, "holds more"},
		{"nulls", maybe, 3, pages{data(3, encPlain, join(levels(3, 0b101), plain32(1, 3)))}, "1 - 3"},
		{"a run beyond the page", maybe, 3, pages{data(3, encPlain, join(levels(5<<1, 1), plain32(1, 2, 3)))}, "definition"},
		{"one too many, of Impala", maybe, 3, pages{data(3, encPlain, join(levels(4<<1, 1), plain32(1, 2, 3)))}, "1 2 3"},
		{"one in its own run", maybe, 3, pages{data(3, encPlain, join(levels(3<<1, 1, 1<<1, 0), plain32(1, 2, 3)))}, "1 2 3"},
		{"one too many, packed", maybe, 3, pages{data(3, encPlain, join(levels(3<<1, 0, 3, 1), nil))}, "- - -"},
		{"one too many after nulls", maybe, 3, pages{data(3, encPlain, join(levels(1<<1, 1, 3<<1, 0), plain32(1)))}, "1 - -"},
		{"one, whole group", maybe, 8, pages{data(8, encPlain, join(levels(5, 0b1, 0b1), plain32(1)))}, "1 - - - - - - -"},
		{"one too many on both pages", maybe, 3, pages{data(2, encPlain, join(levels(3<<1, 1), plain32(1, 2))),
			data(1, encPlain, join(levels(1<<1, 1), plain32(3)))}, "1 2 3"},
		{"one and its value", maybe, 3, pages{data(3, encPlain, join(levels(4<<1, 1), plain32(1, 2, 3, 4)))}, "holds more"},
		{"two too many", maybe, 3, pages{data(3, encPlain, join(levels(3<<1, 1, 2<<1, 0), plain32(1, 2, 3)))}, "definition"},
		{"levels after those of the page", maybe, 3, pages{data(3, encPlain, join(levels(3<<1, 1, 3<<1, 1, 2<<1, 0),
			plain32(1, 2, 3)))}, "definition"},
		{"booleans", flags, 3, pages{data(3, encPlain, []byte{0b101})}, "1 0 1"},
		{"a byte of booleans too many", flags, 3, pages{data(3, encPlain, []byte{0b101, 0})}, "holds more"},
		{"booleans in runs", flags, 3, pages{data(3, encRLE, levels(3<<1, 1))}, "1 1 1"},
		{"booleans after their runs", flags, 3, pages{data(3, encRLE, append(levels(3<<1, 1), 1))}, "holds more"},
		{"delta", flat, 3, pages{data(3, encDelta, delta)}, "1 2 3"},
		{"a delta too many", flat, 2, pages{data(2, encDelta, delta)}, "holds more"},
		{"a byte after deltas", flat, 3, pages{data(3, encDelta, append(delta[:len(delta):len(delta)], 9))}, "holds more"},
		{"split streams", flat, 1, pages{data(1, encSplit, plain32(5))}, "5"},
		{"a split value too many", flat, 1, pages{data(1, encSplit, plain32(5, 6))}, "holds more"},
		{"indices", flat, 3, pages{dictionary, data(3, encDictionary, []byte{1, 3, 0b101})}, "8 7 8"},
		{"a run too long", flat, 3, pages{dictionary, data(3, encDictionary, []byte{1, 4 << 1, 1})}, "holds more"},
		{"packed too long", flat, 3, pages{dictionary, data(3, encDictionary, []byte{1, 5, 0b101, 1})}, "holds more"},
		{"packed padding of zeros", flat, 3, pages{dictionary, data(3, encDictionary, []byte{1, 5, 0b101, 0})}, "8 7 8"},
		{"the last run twice, as DuckDB 1.3 writes it", flat, 8,
			pages{dictionary, data(8, encDictionary, []byte{1, 3, 0b101, 3, 0b101})}, "8 7 8 7 7 7 7 7"},
		{"indices of no bits without runs", flat, 2, pages{dictionary, data(2, encDictionary, []byte{0})}, "holds fewer"},
		{"no bits in too short runs", flat, 3, pages{dictionary, data(3, encDictionary, []byte{0, 2 << 1})}, "holds fewer"},
		{"indices of no bits in runs", flat, 3, pages{dictionary, data(3, encDictionary, []byte{0, 3 << 1})}, "7 7 7"},
		{"indices of no bits, packed", flat, 3, pages{dictionary, data(3, encDictionary, []byte{0, 3})}, "7 7 7"},
		{"no bits in too long runs", flat, 3, pages{lone, data(3, encDictionary, []byte{0, 12 << 1})}, "holds more"},
		{"no runs with one value to choose from", flat, 2, pages{lone, data(2, encDictionary, []byte{0})}, "7 7"},
		{"a dictionary with a value too many", flat, 1, pages{page(pageDictionary, 1, encPlain, none, plain32(7, 8)),
			data(1, encDictionary, []byte{0})}, "dictionary: page holds more"},
		{"pages beyond the rows", flat, 2, pages{data(2, encPlain, plain32(1, 2)), data(1, encPlain, plain32(3))},
			"follow its last page"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := texts(handmade(t, c.schema, c.rows, c.rows, c.pages...))
			text := strings.Join(got, " ")
			conformance.True(t, err == nil && text == c.want || err != nil && strings.Contains(err.Error(), c.want),
				"%s, %v, want %s", text, err, c.want)
		})
	}
}

func TestLevelsDefineRowStarts(t *testing.T) {
	lists := []element{rootOf(1), leafOf(physInt32, repeated)}
	v1 := func(reps byte, n int32, v ...int32) []byte {
		return page(pageData, n, encPlain, [2]int{}, join(levels(3, reps), levels(byte(n<<1), 1), plain32(v...)))
	}
	v2 := func(reps byte, n int32, v ...int32) []byte {
		return page(pageDataV2, n, encPlain, [2]int{2, 2}, join([]byte{3, reps, byte(n << 1), 1}, plain32(v...)))
	}
	for _, c := range []struct {
		name  string
		rows  int64
		pages [][]byte
		want  string
	}{
		{"lists", 4, [][]byte{v1(0b1010, 4, 1, 2, 3, 4), v1(0b0100, 3, 5, 6, 7)}, "[1,2] [3,4] [5] [6,7]"},
		{"lists over pages", 2, [][]byte{v1(0b1010, 4, 1, 2, 3, 4), v1(0b0111, 3, 5, 6, 7)}, "[1,2] [3,4,5,6,7]"},
		{"lists with one level too many", 4, [][]byte{
			page(pageData, 4, encPlain, [2]int{}, join(levels(2, 0, 2, 1, 2, 0, 4, 1), levels(5<<1, 1), plain32(1, 2, 3, 4))),
			v1(0b0100, 3, 5, 6, 7),
		}, "[1,2] [3,4] [5] [6,7]"},
		{"lists in version 2", 5, [][]byte{v2(0b1010, 4, 1, 2, 3, 4), v2(0b0100, 3, 5, 6, 7)}, "[1,2] [3,4] [5] [6,7]"},
		{"the first entry continues", 2, [][]byte{v1(0b0101, 3, 1, 2, 3)}, "does not begin a row"},
		{"a later page continues", 3, [][]byte{v2(0b1010, 4, 1, 2, 3, 4), v2(0b0101, 3, 5, 6, 7)}, "does not begin a row"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := handmade(t, lists, min(c.rows, 4), 3*int64(len(c.pages))+1, c.pages...)
			if len(c.pages) == 1 {
				f = handmade(t, lists, c.rows, 3, c.pages...)
			}
			got, err := texts(f)
			text := strings.Join(got, " ")
			conformance.True(t, err == nil && text == c.want || err != nil && strings.Contains(err.Error(), c.want),
				"%s, %v, want %s", text, err, c.want)
		})
	}
	// Read only the later split. The header's row count, which some writers get wrong, must not determine where it begins.
	f := handmade(t, lists, 4, 7, v2(0b1010, 4, 1, 2, 3, 4), v2(0b0100, 3, 5, 6, 7))
	p := f.NewParser([]int{0})
	var got []string
	err := p.Parse(f.Splits()[1], func(r *record.Record) error {
		got = append(got, string(r.Fields[0].Bytes))
		return nil
	})
	conformance.True(t, err == nil && strings.Join(got, " ") == "[5] [6,7]", "the second split is %s (%v)", got, err)
}

func TestValuesOutsideTheirTypeAreRejected(t *testing.T) {
	small := func(converted int32) element {
		e := leafOf(physInt32, required)
		e.converted = converted
		return e
	}
	micros := leafOf(physInt64, required)
	micros.converted = 8
	wide := func(v ...int64) (b []byte) {
		for _, x := range v {
			b = binary.LittleEndian.AppendUint64(b, uint64(x))
		}
		return b
	}
	const day = 86400
	for _, c := range []struct {
		name string
		leaf element
		body []byte
		rows int64
		want string
	}{
		{"INT_8", small(15), plain32(-129, -128, 127, 128), 4, "bad -128 127 bad"},
		{"INT_16", small(16), plain32(-32769, -32768, 32767, 32768), 4, "bad -32768 32767 bad"},
		{"UINT_8", small(11), plain32(-1, 0, 255, 256), 4, "bad 0 255 bad"},
		{"UINT_16", small(12), plain32(-1, 65535, 65536), 3, "bad 65535 bad"},
		{"UINT_32", small(13), plain32(-1, 0), 2, "4294967295 0"},
		{"TIME_MILLIS", small(7), plain32(-1, 0, day*1000-1, day*1000), 4, "bad 0 86399999 bad"},
		{"TIME_MICROS", micros, wide(-1, 0, day*1e6-1, day*1e6), 4, "bad 0 86399999999 bad"},
	} {
		for _, nested := range []bool{false, true} {
			schema := []element{rootOf(1), c.leaf}
			if nested {
				schema = []element{rootOf(1), {name: "s", repetition: required, children: 1, converted: -1, physical: -1}, c.leaf}
			}
			got, err := texts(handmade(t, schema, c.rows, c.rows, page(pageData, int32(c.rows), encPlain, [2]int{}, c.body)))
			must(t, err)
			var codes []string
			for i, g := range got {
				switch {
				case g == "bad "+table.CodeRange:
					codes = append(codes, "bad")
				case nested:
					codes = append(codes, strings.Fields(c.want)[i]) // another test checks the message
				default:
					codes = append(codes, g)
				}
			}
			conformance.Equal(t, strings.Join(codes, " "), c.want, "%s, nested %v", c.name, nested)
		}
	}
	odd := leafOf(physInt32, required)
	odd.ann, odd.width, odd.signed = annInteger, 7, true
	_, _, err := buildTree([]element{rootOf(1), odd})
	conformance.True(t, err != nil, "integers of 7 bits are accepted")
	far := leafOf(physInt32, required)
	far.ann, far.scale = annDecimal, -1<<31
	_, _, err = buildTree([]element{rootOf(1), far})
	conformance.True(t, err != nil, "decimals with two thousand million zeros are accepted")
}
