package commands

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/objectstore/storetest"
	archive "example.com/tsimport/reader/archivefile"
)

// typedRows returns typed lines: every type at its limits, mixed columns, several versions, rows without attributes.
func typedRows(formats string) string {
	planes := ""
	for plane := range rune(17) {
		planes += string(plane<<16 + 0x41)
	}
	text := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	cells := []string{
		`{"C":"i","V":-9223372036854775808,"IsInt":true,"TS":%d}`, `{"C":"i","V":9223372036854775807,"IsInt":true,"TS":%d}`,
		`{"C":"i","V":0,"IsInt":true,"TS":%d}`, `{"C":"d","V":0.0,"TS":%d}`, `{"C":"d","V":-0.0,"TS":%d}`,
		`{"C":"d","V":1.7976931348623157e308,"TS":%d}`, `{"C":"d","V":5e-324,"TS":%d}`, `{"C":"d","V":3.0,"TS":%d}`,
		`{"C":"d","V":1e21,"TS":%d}`, `{"C":"f","V":true,"TS":%d}`, `{"C":"f","V":false,"TS":%d}`, `{"C":"s","V":"","TS":%d}`,
		`{"C":"s","V":"007","TS":%d}`, `{"C":"s","V":"true","TS":%d}`, `{"C":"s","V":"NULL","TS":%d}`,
		`{"C":"s","V":"a,\"b\"\r\nc","TS":%d}`, `{"C":"s","V":" x ","TS":%d}`, `{"C":"s","V":` + text(planes) + `,"TS":%d}`,
		`{"C":"s","V":"\u0000\u001f\\","TS":%d}`, `{"C":"列, \"1\"","V":"x","TS":%d}`, `{"C":"b","V":"","T":"binary","TS":%d}`,
		`{"C":"b","V":"AP8=","T":"binary","TS":%d}`, `{"C":"b","V":"dGV4dA==","T":"binary","TS":%d}`,
	}
	if formats != "parquet" {
		cells = append(cells, `{"C":"mixed","V":7,"IsInt":true,"TS":%d}`, `{"C":"mixed","V":"seven","TS":%d}`,
			`{"C":"mixed","V":7.5,"TS":%d}`, `{"C":"mixed","V":true,"TS":%d}`, `{"C":"mixed","V":"","TS":%d}`)
	}
	const now = 1_800_000_000_000
	var b strings.Builder
	for i, c := range cells {
		key := fmt.Sprintf(
			`{"Wide":true,"PK":{"Values":[{"C":"id","V":%d,"IsInt":true},{"C":"k","V":%s}]},"Attr":{"Values":[`, i,
			text(fmt.Sprintf("k,\"%d\"", i)))
		b.WriteString(key + fmt.Sprintf(c, now+i))
		for v := range i % 4 { // older versions
			b.WriteString("," + fmt.Sprintf(c, now-1000*v-1))
		}
		if i%5 == 0 {
			b.WriteString(`,{"C":"z","V":"also"}`)
		}
		b.WriteString("]}}\n")
	}
	b.WriteString(`{"Wide":true,"PK":{"Values":[{"C":"id","V":-1,"IsInt":true},{"C":"k","V":""}]},"Attr":{"Values":[]}}` +
		"\n")
	return b.String()
}

type typedCell struct {
	C, T   string
	V      any
	IsInt  bool
	TS     int64
	Base64 bool
}

func createTyped(tsimport func(int, ...string) string, table string) {
	const flags = " --pk id:integer --pk k:string --max-versions 5 --max-deviation 999999999 -q"
	tsimport(0, strings.Fields("table create "+table+flags)...)
}

// typedTable reads the cells of a table by key and column, the newest version first.
func typedTable(t *testing.T, tsimport func(int, ...string) string, table string) map[string]map[string][]typedCell {
	t.Helper()
	rows := map[string]map[string][]typedCell{}
	decode := json.NewDecoder(strings.NewReader(tsimport(0, "export", "--table", table, "--format", "jsonl", "--typed")))
	decode.UseNumber()
	for decode.More() {
		var row struct {
			PK, Attr struct{ Values []typedCell }
		}
		must(t, decode.Decode(&row))
		key := fmt.Sprint(row.PK.Values)
		rows[key] = map[string][]typedCell{}
		for _, c := range row.Attr.Values {
			rows[key][c.C] = append(rows[key][c.C], c)
		}
	}
	return rows
}

// TestExportReportsItsLosses loads exports of each format with the flags that they print. Only reported losses occur.
func TestExportReportsItsLosses(t *testing.T) {
	t.Chdir(t.TempDir())
	tsimport := func(want int, args ...string) string {
		t.Helper()
		out, _ := command(t, want, args...)
		return out
	}
	for _, format := range []string{"csv", "jsonl", "typed", "parquet"} {
		name := "t_" + format
		put(t, name+".in.jsonl", typedRows(format))
		for _, made := range []string{name, "again_" + format} {
			createTyped(tsimport, made)
		}
		tsimport(0, "load", name+".in.jsonl", "--table", name, "--pk", "id:integer", "--pk", "k", "-q")
		args := []string{"export", "--table", name, "--json", "-q", "--format"}
		file := name + "." + format
		if format == "typed" {
			file = name + ".jsonl"
			args = append(args, "jsonl", "--typed")
		} else {
			args = append(args, format)
		}
		var said struct {
			Rows int64
			Lost struct {
				Timestamps, Types int64
				Older             int64 `json:"older_versions"`
			}
			Flags []string `json:"load_flags"`
		}
		must(t, json.Unmarshal([]byte(tsimport(0, append(args, "-o", file)...)), &said))
		load := append([]string{"load", file, "--table", "again_" + format, "-q"}, said.Flags...)
		if format == "typed" { // typed lines have types and the key
			load = append(load, "--pk", "id:integer", "--pk", "k")
		}
		tsimport(0, load...)
		was, is := typedTable(t, tsimport, name), typedTable(t, tsimport, "again_"+format)
		conformance.MustTrue(t, len(was) == len(is) && int64(len(was)) == said.Rows && len(was) >= 20,
			"%s: %d rows of %d, said %d", format, len(is), len(was), said.Rows)
		got := said
		got.Lost.Timestamps, got.Lost.Types, got.Lost.Older = 0, 0, 0
		for key, columns := range was {
			conformance.Equal(t, len(is[key]), len(columns), "%s: columns of %s: %v, want %v", format, key, is[key], columns)
			for column, versions := range columns {
				again := is[key][column]
				if len(again) == 0 {
					t.Errorf("%s: %s of %s is gone", format, column, key)
					continue
				}
				got.Lost.Older += int64(len(versions) - len(again))
				for v := range again {
					w, a := versions[v], again[v]
					if w.TS != a.TS {
						got.Lost.Timestamps++
					}
					w.TS, a.TS = 0, 0
					if w.T != a.T || w.IsInt != a.IsInt || fmt.Sprintf("%T", w.V) != fmt.Sprintf("%T", a.V) {
						got.Lost.Types++
						conformance.Equal(t, fmt.Sprint(w.V), fmt.Sprint(a.V), "%s: %s of %s: text of %v: %v", format, column, key, w, a)
					} else if !cmp.Equal(w, a) {
						t.Errorf("%s: %s of %s: %v became %v", format, column, key, w, a)
					}
				}
			}
		}
		conformance.Equal(t, cmp.Diff(said.Lost, got.Lost), "", "%s: (-said +lost)", format)
		conformance.True(t, format == "typed" != (said.Lost.Timestamps+said.Lost.Older > 0), "%s says %+v", format, said.Lost)
	}
	// A Parquet column has one type.
	tsimport(2, "export", "--table", "t_csv", "--format", "parquet", "-o", "mixed.parquet")
	left, err := filepath.Glob("mixed.parquet*")
	conformance.True(t, err == nil && len(left) == 0, "left behind: %q, %v", left, err)
	// A column that is named twice, or belongs to the key, appears once.
	text := tsimport(0, "export", "--table", "t_csv", "--columns", "id,s,s", "-q")
	conformance.True(t, strings.HasPrefix(text, "id,k,s\n"), "the header is %.30q", text)
}

func TestSelectionIsTheSameInEveryFormat(t *testing.T) {
	t.Chdir(t.TempDir())
	tsimport := func(args ...string) string {
		t.Helper()
		out, _ := command(t, 0, args...)
		return out
	}
	var in strings.Builder
	in.WriteString("id,n,city,rest\n")
	for i := range 500 {
		fmt.Fprintf(&in, "%d,%d,%s,r\n", i, i%10, []string{"a", "b"}[i%2])
	}
	put(t, "a.csv", in.String())
	tsimport("load", "a.csv", "--table", "t", "--pk", "id:integer", "-q")
	selection := strings.Fields(`--from-key 100 --to-key 300 --filter city=="a" --where n>=4 --columns n -q`)
	var want []string
	for i := 100; i < 300; i++ {
		if i%2 == 0 && i%10 >= 4 {
			want = append(want, fmt.Sprintf("%d,%d", i, i%10))
		}
	}
	for _, format := range []string{"csv", "jsonl", "typed", "parquet", "archive"} {
		file := "out." + format
		args := []string{"export", "--table", "t", "--format", format, "-o", file}
		if format == "typed" {
			file = "typed.jsonl"
			args = []string{"export", "--table", "t", "--format", "jsonl", "--typed", "-o", file}
		}
		tsimport(append(args, selection...)...)
		tsimport("load", file, "--table", "again_"+format, "--create", "--pk", "id:integer", "-q")
		got := strings.Split(strings.TrimSpace(tsimport("export", "--table", "again_"+format, "-q")), "\n")
		conformance.Equal(t, cmp.Diff(append([]string{"id,n"}, want...), got), "", "%s: (-want +got)", format)
	}
}

func TestExportFormatFollowsTheFileName(t *testing.T) {
	tsimport := commandsIn(t)
	put(t, "in.csv", "id,n\n1,2\n")
	tsimport(0, "load", "in.csv", "--table", "t", "--pk", "id:integer", "-q")
	for name, start := range map[string]string{
		"a.csv": "id,n\n", "a": "id,n\n", "a.jsonl": `{"id":1,`, "A.JSONL": `{"id":1,`, "a.ndjson": `{"id":1,`,
		"a.json": `{"id":1,`, "a.parquet": "PAR1",
	} {
		tsimport(0, "export", "--table", "t", "-o", name, "-q")
		text, err := os.ReadFile(name)
		conformance.True(t, err == nil && strings.HasPrefix(string(text), start), "%s begins with %.20q, %v", name, text, err)
	}
	tsimport(0, "export", "--table", "t", "-o", "b.jsonl", "--format", "csv", "-q")
	text, err := os.ReadFile("b.jsonl")
	conformance.True(t, err == nil && string(text) == "id,n\n1,2\n", "--format is not heard: %q, %v", text, err)
	typed := tsimport(0, "export", "--table", "t", "--typed", "-q")
	conformance.True(t, strings.HasPrefix(typed, `{"`) && strings.Contains(typed, `"TS"`), "--typed alone: %s", typed)
	for _, name := range []string{"d.csv", "d.parquet"} {
		holds(t, tsimport(2, "export", "--table", "t", "--typed", "-o", name), "--typed is for --format jsonl")
	}
	for _, name := range []string{"c.csv.gz", "c.jsonl.ZST"} {
		holds(t, tsimport(2, "export", "--table", "t", "-o", name), "an export to one file is not compressed")
		conformance.Is(t, conformance.ErrorOf(os.Lstat(name)), fs.ErrNotExist, "%s was made", name)
	}
}

func TestFilteredArchiveIsMarkedPartial(t *testing.T) {
	tsimport := commandsIn(t)
	put(t, "a.csv", "id,n,s\n1,1,a\n2,2,b\n3,,c\n4,4,d\n")
	tsimport(0, "load", "a.csv", "-t", "t", "--pk", "id:integer", "--type", "n=integer")
	export := func(want int, more ...string) string {
		t.Helper()
		return tsimport(want, append([]string{"export", "-t", "t", "--filter", "n >= 2"}, more...)...)
	}
	export(0, "-o", "part/")
	m, err := archive.Read("part")
	must(t, err)
	conformance.True(t, m.Rows == 2 && m.Cells == 4 && m.Holds.Filter == "n >= 2",
		"the archive has %d rows of %d cells and holds %+v", m.Rows, m.Cells, m.Holds)
	many := "s" // more columns than a request can name, so all are read
	for i := range 200 {
		many += fmt.Sprintf(",c%d", i)
	}
	for dir, more := range map[string][]string{
		"filter": {"--columns", "s"}, "where": {"--columns", "s", "--where", "n >= 2"}, "many": {"--columns", many},
	} {
		export(0, append(more, "-o", dir+"/")...) // the conditions need n, which the archive must not have
		m = conformance.Try(archive.Read(dir)).Must(t)
		conformance.Equal(t, m.Rows, 2, "%s: rows", dir)
		conformance.Equal(t, m.Cells, 2, "%s: cells", dir)
	}
	for _, command := range []string{"check", "inspect", "advise"} {
		holds(t, tsimport(2, command, "part"), "part is an archive of a table, which "+command+" does not read")
	}
	for _, whole := range [][]string{nil, {"--range", "2.."}} {
		args := append([]string{"sync", "part", "-t", "t", "--delete", "--max-delete", "100%"}, whole...)
		holds(t, tsimport(2, args...), "only the rows that passed its --filter or --where")
	}
	tsimport(0, "verify", "a.csv", "-t", "t", "--type", "n=integer", "--extra", "fail")
	holds(t, tsimport(2, "export", "-t", "t", "-o", "bad/", "--filter", "n >="), "--filter n >=")
	_, err = os.Stat("bad")
	conformance.True(t, os.IsNotExist(err), "a refused export has made its folder: %v", err)
}

// TestLakeFolderLoadsTheSameRows covers each format, with and without partition folders.
func TestLakeFolderLoadsTheSameRows(t *testing.T) {
	conformance.NotForRaces(t)
	tsimport := commandsIn(t)
	store := storetest.New(t, "bucket")
	for _, format := range []string{"csv", "csv.gz", "csv.zst", "parquet"} {
		name := "t_" + strings.ReplaceAll(format, ".", "_")
		put(t, name+".in.jsonl", typedRows(format))
		made := []string{name, name + "_folder", name + "_store"}
		for _, table := range made {
			createTyped(tsimport, table)
		}
		tsimport(0, "load", name+".in.jsonl", "--table", name, "--pk", "id:integer", "--pk", "k", "-q")
		whole := strings.Split(strings.TrimSpace(tsimport(0, "export", "--table", name, "--format", "jsonl", "-q")), "\n")
		for i, place := range []string{name + `/dt={id < 3 ? nil : k}/odd={id % 2}/`, "s3://bucket/" + name + "/"} {
			said := tsimport(0, "export", "--table", name, "--format", format, "-o", place)
			base, _, folders := strings.Cut(place, "dt=")
			holds(t, said, fmt.Sprintf("exported %d rows of table %s to %d file", len(whole), name,
				map[bool]int{true: len(whole) - 1, false: 1}[folders]))
			_, flags, found := strings.Cut(said, "to load the same types: ")
			conformance.MustTrue(t, found, "%v", said)
			flags, _, _ = strings.Cut(flags, "\n")
			load := append([]string{"load", base, "--table", made[1+i], "-q"}, shellWords(flags)...)
			tsimport(0, load...)
			again := strings.Split(strings.TrimSpace(tsimport(0, "export", "-t", made[1+i], "--format", "jsonl", "-q")), "\n")
			if format != "parquet" { // in Parquet the mixed column has strings
				whole, again = withoutMember(whole, "mixed"), withoutMember(again, "mixed")
			}
			conformance.Equal(t, cmp.Diff(whole, again), "", "%s from %s: (-want +got)", format, place)
		}
	}
	_, err := os.Stat("t_csv/dt=__HIVE_DEFAULT_PARTITION__/odd=1/part-00001-00001.csv")
	conformance.True(t, err == nil, "%v", err)
	conformance.Must(t, conformance.ErrorOf(os.Stat(`t_parquet/dt=k,%225%22/odd=1/part-00001-00001.parquet`)))
	conformance.True(t, len(store.Keys()) >= 8, "the store has %q", store.Keys())
}

// The files of an unfinished export have only a part of the table.
func TestUnfinishedExportIsNotLoaded(t *testing.T) {
	tsimport := commandsIn(t)
	store := storetest.New(t, "bucket")
	store.Set("lake/part-00001-00001.csv", "id\n1\n", time.Now())
	load := []string{"load", "s3://bucket/lake/", "--table", "t", "--pk", "id", "-q"}
	const entry = "lake/.tsimport-archive/entry-00000000"
	store.Set(entry, "{}\n", time.Now())
	holds(t, tsimport(2, load...), "s3://bucket/lake: the export to it is not finished; give its command again")
	store.Set("lake/_manifest.json", "{}\n", time.Now()) // the process was killed after this
	tsimport(0, load...)
	store.Remove(entry)
	tsimport(0, append(load, "--fresh")...)
}

func withoutMember(lines []string, member string) (rest []string) {
	for _, line := range lines {
		rest = append(rest, regexp.MustCompile(`,"`+member+`":("[^"]*"|[^,}]*)`).ReplaceAllString(line, ""))
	}
	return rest
}

func shellWords(line string) (words []string) {
	word, quoted, begun := "", false, false
	for _, c := range line {
		switch {
		case c == '\'':
			quoted, begun = !quoted, true
		case c == ' ' && !quoted:
			if begun {
				words = append(words, word)
			}
			word, begun = "", false
		default:
			word, begun = word+string(c), true
		}
	}
	if begun {
		words = append(words, word)
	}
	return words
}

func TestOptionsThatLakesLackAreRefused(t *testing.T) {
	tsimport := commandsIn(t)
	put(t, "in.csv", "id,n\n1,2\n")
	tsimport(0, "load", "in.csv", "--table", "t", "--pk", "id:integer", "-q")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"writes files in a folder; name one with -o", []string{"--format", "csv.gz", "-o", "a.csv.gz"}},
		{"writes files in a folder; name one with -o", []string{"--format", "csv.zst"}},
		{"an archive has no partition folders", []string{"-o", "out/dt={n}/"}},
		{`"x": want NAME={EXPRESSION}`, []string{"--format", "csv", "-o", "out/dt={n}/x/"}},
		{`-o 'out/dt={n +}/': expression "text(n +)"`, []string{"--format", "csv", "-o", "out/dt={n +}/"}},
		{"end it with /", []string{"--format", "csv", "-o", "oss://b/a.csv"}},
		{"--format jsonl writes a file, not a folder", []string{"--format", "jsonl", "-o", "out/"}},
		{"--limit", []string{"--format", "csv", "-o", "out/", "--limit", "3"}},
		{"--json", []string{"--format", "csv", "-o", "out/", "--json"}},
		{"--versions", []string{"--format", "csv", "-o", "out/", "--versions", "2"}},
		{"--part-size is for files in a folder", []string{"--format", "csv", "-o", "out.csv", "--part-size", "1MiB"}},
		{"64KiB to 256MiB", []string{"--format", "csv", "-o", "out/", "--part-size", "1GiB"}},
		{`the folders n={…} have the same name as the column "n"`, []string{"--format", "csv", "-o", "out/n={n}/"}},
	} {
		holds(t, tsimport(2, append([]string{"export", "--table", "t"}, c.args...)...), c.want)
	}
	holds(t, tsimport(0, "export", "--table", "t", "--format", "csv", "-o", "days/dt={day(n + \"x\")}/"),
		"warning: 1 row is in the folders for missing values: ")
	tsimport(0, "export", "--table", "t", "--format", "csv", "-o", "out/", "--columns", "n,none", "-q")
	text, err := os.ReadFile("out/part-00001-00001.csv")
	conformance.True(t, err == nil && string(text) == "id,n,none\n1,2,\n", "%q, %v", text, err)
}
