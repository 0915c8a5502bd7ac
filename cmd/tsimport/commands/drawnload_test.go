// The files drawn*_test.go draw loads of several inputs and judge their tables. Draw makes the files of a Load, and the
// meaning of each record, from a seed. Judge compares a table with the meanings. They share no code with the loader.

package commands_test

import (
	"fmt"
	"math/rand/v2"
	"path"
	"strconv"
	"strings"
	"time"
)

type Load struct {
	Seed   uint64
	Theme  string
	Files  []File // in load order
	Folder string // folder that is named instead of the files; "" names the files
	Key    string // key column
	Flags  []string
	Update bool
	// Must is set if the files are consistent: the load must succeed, and reject only records with Reject.
	Must bool
}

// File is an input, or a leftover next to the inputs that must not be read.
type File struct {
	Path     string // relative, with slashes
	Content  []byte
	Records  []Record
	Leftover bool
}

func (l *Load) Arguments() []string {
	if l.Folder != "" {
		return []string{l.Folder}
	}
	var paths []string
	for _, f := range l.Files {
		paths = append(paths, f.Path)
	}
	return paths
}

type theme struct {
	name string
	draw func(d *draw)
}

var themes = []theme{
	{"plain", plain}, {"rare kind of key", rareKey}, {"units", timesAndUnits}, {"scales", scales}, {"tags", tags},
	{"encodings", encodings}, {"leftovers", leftovers}, {"seams", seams}, {"missing columns", missing},
	{"path columns", pathColumns}, {"pretty-printed", pretty}, {"dialects", dialects}, {"after the sample", afterSample},
}

// Draw draws the load of a theme and a seed. It is deterministic.
func Draw(t theme, seed uint64) *Load {
	d := &draw{Rand: rand.New(rand.NewPCG(seed, 0)), load: &Load{Seed: seed, Key: "id", Theme: t.name}}
	if d.IntN(3) == 0 {
		d.load.Update = true
		d.load.Flags = append(d.load.Flags, "--mode", "update")
	}
	t.draw(d)
	return d.load
}

type draw struct {
	*rand.Rand
	load *Load
}

func (d *draw) one(of ...string) string { return of[d.IntN(len(of))] }

func (d *draw) flags(f ...string) { d.load.Flags = append(d.load.Flags, f...) }

func (d *draw) add(name string, content []byte, records []Record) {
	ending, content := d.compress(content)
	name += ending
	for i := range records {
		records[i].File, records[i].Number = path.Base(name), i+1
	}
	d.load.Files = append(d.load.Files, File{Path: name, Content: content, Records: records})
}

// records draws records with integer keys, few of which occur in other files. cells draws the cells of each record.
func (d *draw) records(least, most int, cells func() map[string]Cell) []Record {
	records := make([]Record, least+d.IntN(most-least+1))
	for i, n := range d.Perm(3 * most)[:len(records)] {
		records[i] = Record{Key: whole(int64(n)), Cells: cells()}
	}
	return records
}

func whole(n int64) Cell  { return Cell{Kind: Integer, N: n} }
func words(s string) Cell { return Cell{Kind: Text, Text: s} }
func (d *draw) word() Cell {
	return words(d.one("oak", "a b", "", "x,y", `q"q`, "l1\nl2", "ünï", "{", "-"))
}

// cells draws columns that mean the same in every format.
func (d *draw) cells() map[string]Cell {
	return map[string]Cell{
		"n": whole(d.Int64N(1e6) - 5e5), "w": d.word(), "x": d.fraction(),
	}
}

// fraction draws a number that is not an integer and that every program prints in the same way.
func (d *draw) fraction() Cell {
	return Cell{Kind: Decimal, Text: fmt.Sprintf("%d.%d", d.IntN(1000), 1+d.IntN(9))}
}

func plain(d *draw) {
	d.load.Must = true
	for i := range 2 {
		d.write(fmt.Sprintf("%c", 'a'+i), d.one(tableFormats...), d.records(1, 12, d.cells), layout{})
	}
}

// rareKey draws a file of typed records, one of which has its key as text.
func rareKey(d *draw) {
	records := d.records(20, 40, d.cells)
	records[d.IntN(len(records))].Key = Cell{Kind: Text, Text: strconv.Itoa(1000 + d.IntN(1000)), Typed: true}
	d.write("a", "jsonl", records, layout{})
	d.write("b", d.one(tableFormats...), d.records(20, 40, d.cells), layout{})
}

var timeUnits = []time.Duration{time.Second, time.Millisecond, time.Microsecond, time.Nanosecond}

// timesAndUnits draws a column of times, durations or numbers, from files with different units.
func timesAndUnits(d *draw) {
	if d.IntN(2) == 0 {
		d.flags("--type", "v=integer")
	}
	for i := range 2 {
		unit := timeUnits[d.IntN(len(timeUnits))]
		kind := []Kind{Duration, Duration, Instant, Instant, Local, Integer}[d.IntN(6)]
		records := d.records(1, 8, func() map[string]Cell {
			n := (1_600_000_000 + d.Int64N(1e6)) * int64(time.Second)
			if kind == Duration {
				n = (1 + d.Int64N(5000)) * int64(unit)
			} else if kind == Integer {
				n = d.Int64N(1e6)
			} else {
				n += d.Int64N(1e9) / int64(unit) * int64(unit)
			}
			return map[string]Cell{"v": {Kind: kind, N: n, Unit: int64(unit), Typed: true}}
		})
		format := "parquet"
		if kind == Duration || kind != Integer && unit == time.Second {
			format = "arrow"
		}
		if kind == Local && format == "arrow" {
			format = "parquet"
			for _, r := range records {
				c := r.Cells["v"]
				c.Unit = int64(time.Millisecond)
				r.Cells["v"] = c
			}
		}
		if kind == Integer {
			format = d.one("csv", "jsonl", "parquet")
		}
		d.write(fmt.Sprintf("%c", 'a'+i), format, records, layout{})
	}
}

func scales(d *draw) {
	if d.IntN(3) > 0 {
		d.flags("--type", "v=integer")
	}
	for i := range 2 {
		scale := 2 + d.Int64N(2)
		d.write(fmt.Sprintf("%c", 'a'+i), "parquet", d.records(1, 8, func() map[string]Cell {
			n := d.Int64N(1e6)
			p := []int64{1, 10, 100, 1000}[scale]
			return map[string]Cell{"v": {Kind: Decimal, Typed: true, N: n, Unit: scale,
				Text: fmt.Sprintf("%d.%0*d", n/p, int(scale), n%p)}}
		}), layout{})
	}
}

// tags draws JSON of MongoDB in which the first records may have no tags.
func tags(d *draw) {
	d.load.Key = "_id"
	for i := range 2 {
		records := d.records(1, 12, func() map[string]Cell {
			n := d.Int64N(1e6)
			ms := 1_600_000_000_000 + d.Int64N(1e9)
			return map[string]Cell{
				"n": {Kind: Integer, N: n, Typed: true, Tag: fmt.Sprintf(`{"$numberLong":"%d"}`, n)},
				"t": {Kind: Instant, N: ms * 1e6, Typed: true, Tag: fmt.Sprintf(`{"$date":"%s"}`,
					time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z"))},
			}
		})
		untagged := d.IntN(4) // number of records without tags at the beginning
		for i := range records {
			id := fmt.Sprintf("%024x", records[i].Key.N)
			records[i].Key = Cell{Kind: ID, Text: id, Typed: true, Tag: `{"$oid":"` + id + `"}`}
			if i < untagged {
				records[i].Key = Cell{Kind: Text, Text: "k" + strconv.Itoa(i), Typed: true}
				records[i].Cells = map[string]Cell{"n": {Kind: Integer, N: 1, Typed: true}, "t": {}}
			}
		}
		d.write(fmt.Sprintf("%c", 'a'+i), "jsonl", records, layout{})
	}
}

// encodings draws CSV in several encodings, some with a flag, but no bytes that only a flag could make unambiguous.
func encodings(d *draw) {
	may := map[string][]string{
		"": {"", "mark", "utf-16", "gb18030", "latin1"}, "gb18030": {"", "mark", "utf-16", "gb18030"},
		"gbk": {"", "mark", "utf-16", "gb18030"}, "latin1": {"latin1", "mark", "utf-16"}, "utf-16": {"", "mark", "utf-16"},
	}
	flag := d.one("", "", "gb18030", "gbk", "latin1", "utf-16")
	if flag != "" {
		d.flags("--encoding", flag)
	}
	for i := range 2 {
		l := layout{encoding: d.one(may[flag]...), valueFirst: d.IntN(2) == 0}
		chinese := l.encoding == "gb18030" || l.encoding != "latin1" && d.IntN(2) == 0
		records := d.records(2, 6, func() map[string]Cell {
			if chinese {
				return map[string]Cell{"v": words("杭州西湖区" + d.one("文三路", "学院路")), "w": words("x")}
			}
			return map[string]Cell{"v": words("Größe, Öl für Käse, ähnlich süß"), "w": words("é")}
		})
		d.write(fmt.Sprintf("%c", 'a'+i), "csv", records, l)
	}
}

// leftovers draws a folder in which programs have left older or unfinished files.
func leftovers(d *draw) {
	d.load.Must, d.load.Folder = true, "in"
	format := d.one("csv", "jsonl")
	for i := range 2 {
		d.write(fmt.Sprintf("in/part-%d", i), format, d.records(1, 8, d.cells), layout{})
	}
	for range 1 + d.IntN(3) {
		older := d.load.Files[d.IntN(2)]
		ending := d.one("~", ".bak", ".orig", ".swp", ".tmp", ".part", ".partial", ".crdownload", ".filepart", "._COPYING_",
			".inprogress", ".TMP")
		d.write("in/left", format, d.records(1, 8, d.cells), layout{})
		left := &d.load.Files[len(d.load.Files)-1]
		left.Path, left.Leftover = older.Path+ending, true
	}
}

// seams draws files that were joined from several, each with its own header or byte order mark.
func seams(d *draw) {
	d.load.Must = true
	for i := range 2 {
		d.writeJoined(fmt.Sprintf("%c", 'a'+i), d.records(2, 10, d.cells))
	}
}

// missing draws two files. Each lacks some columns of the other.
func missing(d *draw) {
	d.load.Must = true
	d.flags("--missing", "null")
	all := []string{"n", "w", "x"}
	keep := all[d.IntN(3)]
	for i := range 2 {
		left := map[string]bool{}
		for _, c := range all {
			left[c] = c != keep && d.IntN(2) == 0
		}
		d.write(fmt.Sprintf("%c", 'a'+i), d.one(tableFormats...), d.records(1, 12, func() map[string]Cell {
			cells := d.cells()
			for c, out := range left {
				if out {
					delete(cells, c)
				}
			}
			return cells
		}), layout{})
	}
}

// pathColumns draws folders whose names are values of a column that the files may also have.
func pathColumns(d *draw) {
	d.load.Must, d.load.Folder = true, "in"
	d.flags("--path-columns")
	has := d.IntN(3) > 0
	for i, day := range []string{"2024-01-01", "2024-01-02"} {
		records := d.records(1, 8, func() map[string]Cell {
			cells := map[string]Cell{"w": words("w")}
			if has {
				cells["dt"] = words(d.one(day, day, day, "2023-12-31"))
			}
			return cells
		})
		d.write(fmt.Sprintf("in/dt=%s/part-%d", day, i), d.one("csv", "jsonl"), records, layout{})
		for i, r := range records {
			if own, ok := r.Cells["dt"]; ok && own.Text != day {
				records[i].Reject = true
			}
			r.Cells["dt"] = words(day)
		}
	}
}

// pretty draws JSON documents over several lines. Some of the lines are objects on their own.
func pretty(d *draw) {
	d.load.Must = true
	for i := range 2 {
		nested := func() map[string]Cell { return map[string]Cell{"items": d.nested(), "extra": d.nested()} }
		records := d.records(1, 4, nested)
		var b strings.Builder
		for _, r := range records {
			fmt.Fprintf(&b, "{\n \"id\": %d,\n \"items\": %s,\n \"extra\": %s\n}\n", r.Key.N, lines(r.Cells["items"].Text),
				lines(r.Cells["extra"].Text))
		}
		d.add(fmt.Sprintf("%c.json", 'a'+i), []byte(b.String()), records)
	}
}

func (d *draw) nested() Cell {
	var objects []string
	for range 1 + d.IntN(3) {
		objects = append(objects, fmt.Sprintf(`{"id":%d,"v":%q}`, d.IntN(100), d.one("a", "b")))
	}
	return words("[" + strings.Join(objects, ",") + "]")
}

func lines(array string) string {
	return "[\n  " + strings.ReplaceAll(strings.Trim(array, "[]"), "},{", "},\n  {") + "\n ]"
}

// dialects draws CSV with other delimiters and quotes, which the load must detect.
func dialects(d *draw) {
	d.flags("--dialect", "auto")
	for i := range 2 {
		l := layout{delimiter: d.one(",", ";", "\t", "|"), quote: d.one(`"`, `"`, "'")}
		d.write(fmt.Sprintf("%c", 'a'+i), "csv", d.records(8, 20, d.cells), l)
	}
}

// afterSample draws more rows than a load samples, and after them rows that contradict the sample.
func afterSample(d *draw) {
	filler := strings.Repeat("lorem ipsum ", 8000)
	records := d.records(110, 120,
		func() map[string]Cell { return map[string]Cell{"n": whole(d.Int64N(100)), "w": words(filler)} })
	odd := len(records) - 1 - d.IntN(3)
	switch d.IntN(3) {
	case 0:
		records[odd].Cells["n"] = Cell{Kind: Text, Text: "none", Typed: true}
	case 1:
		records[odd].Cells["n"] = Cell{Kind: Integer, N: 5, Typed: true, Tag: `{"$numberLong":"5"}`}
	default:
		records[odd].Key = Cell{Kind: Text, Text: "key", Typed: true}
	}
	d.write("a", "jsonl", records, layout{})
	d.write("b", d.one("csv", "jsonl"), d.records(1, 8,
		func() map[string]Cell { return map[string]Cell{"n": whole(d.Int64N(100)), "w": words("b")} }), layout{})
}
