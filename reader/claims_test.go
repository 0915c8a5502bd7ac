package reader

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tsimport/internal/conformance"
	"tsimport/reader/convert"
	"tsimport/reader/csv"
	"tsimport/reader/input"
	"tsimport/reader/record"
)

// claim is a sentence, or some words, of a page about inputs and a file of the tree that shows it.
type claim struct {
	says string // as in the page, apart from the line breaks
	file string // below testdata
	o    Options
	want string // the columns and records; or what the refusal says, after "refused: "
}

// dialect returns the options of --dialect name.
func dialect(name string, o Options) Options {
	d, _, ok := csv.Named(name)
	if !ok {
		panic(name)
	}
	o.Dialect = d
	return o
}

const dumps = "../../e2e/dumps/made/" // written by the databases

// claims are those that one file can show. Want may be cut: "…" at its end stands for the rest.
var claims = []claim{
	{"gzip (also multi-member, BGZF)", "made/compressed/baseball.multimember.csv.gz", Options{}, baseball},
	{"gzip (also multi-member, BGZF)", "csv/duckdb/test/concat.gz", Options{}, "…"},
	{"zstd, bzip2, xz, lz4", "made/compressed/baseball.multiframe.csv.zst", Options{}, baseball},
	{"zstd, bzip2, xz, lz4", "made/compressed/baseball.multistream.csv.bz2", Options{}, baseball},
	{"zstd, bzip2, xz, lz4", "made/compressed/baseball.multistream.csv.xz", Options{}, baseball},
	{"zstd, bzip2, xz, lz4", "made/compressed/baseball.multiframe.csv.lz4", Options{}, baseball},
	{"snappy (framed, or one bare block)", "made/compressed/baseball.csv.sz", Options{}, baseball},
	{"snappy (framed, or one bare block)", "made/compressed/baseball.raw.csv.snappy", Options{}, baseball},
	{"zip, 7z, tar, lzip, .lzma and others are refused by name", "csv/xz-utils/files/good-1-v0.lz", Options{}, "refused: lzip"},
	{"zip, 7z, tar, lzip, .lzma and others are refused by name", "csv/xz-utils/files/good-known_size-with_eopm.lzma", Options{}, "refused: lzma"},
	{"zip, 7z, tar, lzip, .lzma and others are refused by name", "made/refused/baseball.zip", Options{}, "refused: zip"},
	{"zip, 7z, tar, lzip, .lzma and others are refused by name", "made/refused/baseball.tar", Options{}, "refused: tar"},
	{"the first bytes: gzip", "made/compressed/baseball.wrong-extension.csv", Options{}, baseball},

	{"a byte order mark (UTF-8, UTF-16, GB18030)", "made/text/utf-8-bom.csv", Options{}, "编号,名称; 1,学生卡"},
	{"a byte order mark (UTF-8, UTF-16, GB18030)", "made/text/utf-16le-bom.csv", Options{}, "编号,名称; 1,学生卡"},
	{"a byte order mark (UTF-8, UTF-16, GB18030)", "made/text/utf-16be-bom.csv", Options{}, "编号,名称; 1,学生卡"},
	{"a byte order mark (UTF-8, UTF-16, GB18030)", "made/text/bom.gb18030.csv", Options{}, "编号,名称; 1,学生卡; 2,𠮷野家"},
	{"UTF-8 otherwise, and strictly", "made/text/not-utf-8.csv", Options{}, "id,name; 1,Ann; 2,M\xfcller"}, // the load rejects it
	{"`--encoding`", "made/text/not-utf-8.csv", Options{Encoding: "latin1"}, "id,name; 1,Ann; 2,Müller"},

	{"a tab in `.tsv` and `.tab`", "made/text/people.tsv", Options{}, "id,name; 1,A,nn; 2,Bo"},
	{"LF with all CRs before it (CR LF, CR CR LF)", "made/text/crcrlf.csv", Options{}, "id,name; 1,Ann; 2,Bo"},
	{"CR where lines end with CR throughout", "made/text/cr.csv", Options{}, "id,name; 1,Ann; 2,Bo"},
	{"refused where a header holds a CR outside quotes", "made/text/mixed-header.csv", Options{}, "refused: carriage return"},
	{"`--record-end TEXT`, exactly", "made/text/bcp.txt", Options{Dialect: csv.Dialect{Delimiter: "+|", RecordEnd: "&|\n"}}, "id,name; 1,a,b; 2,c\nd"},

	{"objects one after the other (pretty-printed ones too)", "made/text/pretty.json", Options{}, "id; 1; 2"},
	{"An element that is not an object, or an object that breaks the rules inside, is a rejected record", "made/text/array.json", Options{}, `id,v; 1,{"b":[1,2]}; 2,; BadJSON`},
	{"a missing comma, a bracket too many or an array without an end fails the load at the exact byte", "made/text/no-comma.json", Options{}, "refused: at byte 12: want ',' or ']', found '{'"},
	{"a missing comma, a bracket too many or an array without an end fails the load at the exact byte", "made/text/no-end.json", Options{}, "refused: the array has no end"},
	{"Lines of the vendor's own export", "made/text/export.jsonl", Options{}, "…; a,1; b,x"},
	{"a member that comes twice in an object is ambiguous: the record is rejected", "made/text/twice.jsonl", Options{}, "id; BadJSON; 3"},

	{"an empty file has no header and no columns: refused", "csv/csv-jl/test_empty_file.csv", Options{}, "refused: the file is empty"},
	{"`--format csv` or `jsonl` reads any file as that", "made/refused/people.xml", Options{Format: CSV}, `<?xml version="1.0"?>; <people><p id="1">Ann</p></people>`},
	{"the checksum of a plain gzip file stands at its end", "made/compressed/baseball.badcrc.csv.gz", Options{}, "refused: invalid checksum"},
	{"Compressed data that is damaged fails the load", "made/compressed/baseball.badcheck.csv.zst", Options{}, "refused: CRC"},
	{"Compressed data that is damaged fails the load", "made/compressed/baseball.truncated.csv.bz2", Options{}, "refused: cut short"},
	{"Compressed data that is damaged fails the load", "made/compressed/baseball.trailing-garbage.csv.gz", Options{}, "refused: data after the end"},

	{"| `mysql-batch` |", dumps + "mysql-batch.txt", dialect("mysql-batch", Options{NoHeader: true}), "…"},
	{"| `mysql-tab` |", dumps + "mysql-tab.txt", dialect("mysql-tab", Options{NoHeader: true}), "…"},
	{"| `mysql` | either, found out by the file", dumps + "mysql-tab.txt", dialect("mysql", Options{NoHeader: true}), "…"},
	{"| `postgres` |", dumps + "postgres.txt", dialect("postgres", Options{NoHeader: true}), "…"},
	{"| `postgres-csv` |", dumps + "postgres.csv", dialect("postgres-csv", Options{}), "…"},
	{"| `sqlite` |", dumps + "sqlite.csv", dialect("sqlite", Options{}), "…"},
	{"| `sqlite-quote` |", dumps + "sqlite-quote.txt", dialect("sqlite-quote", Options{}), "…"},
	{"`TabSeparatedWithNames`, `…WithNamesAndTypes`", "made/text/clickhouse.tsv", dialect("clickhouse", Options{}), "id,name,v; 1,a\tb,; 2,\\qc,x"},
	{"`CSVWithNames`, `…WithNamesAndTypes`", "made/text/clickhouse.csv", dialect("clickhouse-csv", Options{}), "id,name,v; 1,a \"b\",\\N"},
	{"say whether there is one", "made/text/clickhouse.tsv", dialect("clickhouse-types", Options{}), "id,name,v; 1,a\tb,; 2,\\qc,x"},
	{"say whether there is one", "made/text/clickhouse.tsv", dialect("clickhouse-names", Options{}), "id,name,v; UInt64,String,Nullable(String); 1,a\tb,; 2,\\qc,x"},
	{"say whether there is one", "made/text/clickhouse.csv", dialect("clickhouse-csv-types", Options{}), "id,name,v; 1,a \"b\",\\N"},
	{"say whether there is one", "made/text/clickhouse.csv", dialect("clickhouse-csv-names", Options{}), "id,name,v; UInt64,String,Nullable(String); 1,a \"b\",\\N"},
	{"text tables with `ESCAPED BY '\\'`", "made/text/hive-escaped.txt", dialect("hive-escaped", Options{NoHeader: true}), "c1,c2,c3; 1,a\x01b,; 2,c\nd,"},
	{"text tables without", "made/text/hive-plain.txt", dialect("hive-plain", Options{NoHeader: true}), "c1,c2,c3; 1,a\\b,\\N; 2,c\\,d"},
	{"only records that depend on it are rejected", "made/text/hive-doubt.txt", dialect("hive", Options{NoHeader: true}), "c1,c2,c3; AmbiguousEscape; 2,e,f"},
	{"CSV of Excel, with or without a first line `sep=;`", "made/text/excel.csv", dialect("excel", Options{}), "id,name; 1,a;b"},

	{"page checksum is wrong: refused", "parquet/parquet-testing/data/datapage_v1-corrupt-checksum.parquet", Options{}, "refused: page checksum"},
	{"bytes after a column's last page mean that something was lost or moved", "parquet/duckdb/data/parquet-testing/decimal/byte_array_decimal_empty_value.parquet", Options{}, "refused: page holds more than the values"},
	{"INT96 nanoseconds outside a day", "parquet/parquet-testing/data/int96_from_spark.parquet", Options{}, "…; OutOfRange…"},
	{"compression LZ4 (deprecated, without a definition) | read", "parquet/parquet-testing/data/hadoop_lz4_compressed.parquet", Options{}, "c0,c1,v11; 1593604800,abc,42; 1593604800,def,7.7; 1593604801,abc,42.125; 1593604801,def,7.7"},
	{"Not supported, and refused by name: encryption", "parquet/duckdb/data/parquet-testing/encryption/encrypted_footer.parquet", Options{}, "refused: encrypted"},
}

const baseball = "Rk,Year,Age,Tm,Lg,c6,W,L,W-L%,G,Finish,Wpost,Lpost,W-L%post,c15; 1,1978,37,Atlanta Braves,NL,,69,93,…"

// inputPages are the pages that the claims are of.
var inputPages = []string{"inputs.md", "types.md", "dumps.md", "parquet-arrow.md", "conformance.md"}

// TestEachClaimOfTheInputPagesHasAFile: each of the claims stands in a page about inputs, and reading its file gives what it
// says.
func TestEachClaimOfTheInputPagesHasAFile(t *testing.T) {
	var page string
	for _, name := range inputPages {
		text, err := os.ReadFile(filepath.Join("../docs", name))
		must(t, err)
		page += strings.Join(strings.Fields(string(text)), " ") + " "
	}
	for _, c := range claims {
		t.Run(c.file+" "+c.o.Dialect.Name, func(t *testing.T) {
			if !strings.Contains(page, c.says) {
				t.Errorf("no page about inputs says %q: change the claim, and the file if need be", c.says)
			}
			got := recordsOf(found(t, filepath.Join("testdata", c.file)), c.o)
			if !isLike(got, c.want) || !strings.Contains(got, ": ") && !strings.Contains(got, "; ") {
				t.Errorf("it gives %.300q, want %q", got, c.want)
			}
		})
	}
}

// recordsOf reads a source to its end, as load does: the columns and each record's values, or the code of what rejects it.
func recordsOf(item input.Item, o Options) string {
	s, err := Open(context.Background(), item, o)
	if err != nil {
		return "refused: " + err.Error()
	}
	defer s.Close()
	var b strings.Builder
	b.WriteString(strings.Join(s.Columns, ","))
	decode := s.Decode()
	if err := readEach(s, func(rec *record.Record) {
		if rec.Bad != nil {
			fmt.Fprintf(&b, "; %s", rec.Bad.Code)
			return
		}
		for i := range rec.Fields {
			text := convert.Text(&rec.Fields[i])
			if decode != nil {
				out, _ := decode(nil, []byte(text))
				text = string(out)
			}
			if i == 0 {
				b.WriteString("; ")
			} else {
				b.WriteByte(',')
			}
			b.WriteString(text)
		}
	}); err != nil {
		return "refused: " + err.Error()
	}
	return b.String()
}

// isLike compares with a text in which … stands for any; a refusal need only hold what is wanted of it.
func isLike(got, want string) bool {
	if reason, ok := strings.CutPrefix(want, "refused: "); ok {
		return strings.HasPrefix(got, "refused: ") && strings.Contains(got, reason)
	}
	if strings.HasPrefix(got, "refused: ") {
		return false
	}
	parts := strings.Split(want, "…")
	if len(parts) == 1 {
		return got == want
	}
	if !strings.HasPrefix(got, parts[0]) || !strings.HasSuffix(got, parts[len(parts)-1]) {
		return false
	}
	for _, p := range parts {
		i := strings.Index(got, p)
		if i < 0 {
			return false
		}
		got = got[i+len(p):]
	}
	return true
}

// TestEveryDialectHasAFile: each dialect that csv.Named knows is one of the claims.
func TestEveryDialectHasAFile(t *testing.T) {
	for _, name := range csv.Programs {
		if !slices.ContainsFunc(claims, func(c claim) bool { return c.o.Dialect.Name == name }) {
			t.Errorf("no file of docs/inputs.md's claims is read with --dialect %s", name)
		}
	}
}

// withoutFile are kinds without rows of which the tree has no file, with the reason.
var withoutFile = map[string]string{
	"Parquet inside a compressed file": "played in TestFilesWithoutRowsAreRefusedByName",
	"a JPEG picture":                   "no program here writes one in a few bytes",
	"a program":                        "it would have to be one for some processor",
	"a pg_dump archive":                "needs a server",
	"a pg_dump archive (tar)":          "needs a server; played in TestFilesWithoutRowsAreRefusedByName",
	"Amazon Ion":                       "only DynamoDB writes it; played in TestTypedJSONIsFoundByItsContent",
}

// TestEveryKindWithoutRowsHasAFile: the files that docs/inputs.md says are refused by name were written by the programs named
// there, not by those who wrote the code that knows them.
func TestEveryKindWithoutRowsHasAFile(t *testing.T) {
	dir := conformance.Part(t)
	refusals := map[string]string{}
	for _, f := range conformance.Files(t, dir) {
		if f.Expected != "error" || f.Format != "other" && f.Format != "parquet" {
			continue
		}
		s, err := Open(t.Context(), found(t, filepath.Join(dir, f.Path)), Options{})
		if err == nil {
			s.Close()
			if f.Format == "other" {
				t.Errorf("%s is read as %v with columns %.60q", f.Path, s.Format, s.Columns)
			}
			continue
		}
		refusals[f.Path] = err.Error()
		if f.Format == "other" && !strings.Contains(err.Error(), "; ") {
			t.Errorf("%s: no way is named that works: %v", f.Path, err)
		}
	}
	for _, k := range kindsWithoutRows {
		has := false
		for _, text := range refusals {
			has = has || strings.Contains(text, fmt.Sprintf("the file is %s", k.what))
		}
		if reason := withoutFile[k.what]; has != (reason == "") {
			t.Errorf("%s: a file is there: %v; the list says %q", k.what, has, reason)
		}
	}
}
