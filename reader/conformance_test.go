package reader

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/convert"
	"example.com/tsimport/reader/csv"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// counted is the result of reading a source.
type counted struct {
	rows   int64 // readable records
	bad    int64
	quotes int64 // rejected records with a misplaced quote
	err    error
}

// readAll reads a source to its end as a load would, and counts the records.
func readAll(item input.Item, o Options) (c counted) {
	s, err := Open(context.Background(), item, o)
	if err != nil {
		return counted{err: err}
	}
	defer s.Close()
	c.err = readEach(s, func(rec *record.Record) {
		if rec.Bad != nil {
			c.bad++
			if rec.Bad.Code == table.CodeQuote {
				c.quotes++
			}
		} else {
			c.rows++
		}
	})
	return c
}

// readEach reads a source to its end as a load would.
func readEach(s *File, each func(*record.Record)) error {
	p := s.NewParser(all(s))
	defer p.Close()
	return eachSplit(s, func(sp source.Split) error {
		_, _, err := p.Parse(sp, each)
		return err
	})
}

// all returns the indexes of a source's columns.
func all(s *File) (used []int) {
	for i := range s.Columns {
		used = append(used, i)
	}
	return used
}

// eachSplit calls each for every split of a source; if reading fails, also for the text before the error.
func eachSplit(s *File, each func(source.Split) error) error {
	for {
		piece, err := s.Next()
		var splits []source.Split
		end := errors.Is(err, io.EOF)
		switch {
		case end:
			splits, err = s.Finish()
		case err == nil:
			prepared := piece.Prepare()
			splits, err = s.Add(piece)
			err = errors.Join(prepared, err)
		}
		if err != nil && !end {
			splits = append(splits, s.Whole()...)
		}
		for _, sp := range splits {
			err = errors.Join(err, each(sp))
		}
		if end || err != nil {
			return err
		}
	}
}

// optionsOf returns the options that a user who knows the manifest would give.
func optionsOf(f conformance.File) Options {
	o := Options{}
	switch f.Format {
	case "parquet":
		o.Format = Parquet
	case "jsonl", "json":
		o.Format = JSONLines
	case "other": // a file without rows, recognised by its content
		return o
	default:
		o.Format = CSV
		if f.Delimiter != nil && *f.Delimiter != "" {
			o.Dialect = csv.Dialect{Delimiter: *f.Delimiter, Quote: '"'}
			if *f.Delimiter == "+|" { // written by SQL Server's bcp, like AdventureWorks
				o.Dialect.RecordEnd = "&|\n"
				if strings.HasSuffix(f.Path, "/Document.csv") {
					o.Dialect.RecordEnd = "&|\r\n"
				}
			}
		}
		o.NoHeader = f.Header == nil || !*f.Header
	}
	switch {
	case strings.HasSuffix(f.Encoding, "-bom"):
	case f.Encoding == "latin1", f.Encoding == "unknown-8bit":
		o.Encoding = "latin1"
	case f.Encoding == "gb18030", f.Encoding == "utf-16le", f.Encoding == "utf-16be":
		o.Encoding = f.Encoding
	}
	if f.Format == "parquet" {
		o.Encoding = ""
	}
	return o
}

// deviations explains files that are read correctly although the manifest says otherwise, each for its own reason.
// sharedReason knows the reasons that apply to several files.
var deviations = map[string]string{
	"csv/duckdb/17738.csv":                      "an empty line of one column is a record without a value",
	"csv/duckdb/afl/4086/case_3.csv":            "an empty line of one column is a record without a value",
	"csv/duckdb/blank_line.csv":                 "an empty line of one column is a record without a value",
	"csv/duckdb/test/windows_newline_empty.csv": "an empty line of one column is a record without a value",
	"csv/duckdb-json/duplicate_key.ndjson": "a member that comes twice in an object is ambiguous: " +
		"the record is rejected",
	"csv/duckdb-json/malformed/union/empty_object.ndjson": "valid JSON lines that the source's tool refuses for a " +
		"type of its own",
	"csv/duckdb-json/malformed/union/too_many_keys.ndjson": "valid JSON lines that the source's tool refuses for a " +
		"type of its own",
	"csv/jsontestsuite/test_parsing/y_array_heterogeneous.json": "elements of an array that are not objects are rejected",
	"csv/xz-utils/files/bad-1-v1-magic-2.lz": "without its magic number it is not an lzip file; its " +
		"bytes are read as text, and rejected where they are not UTF-8",

	"parquet/parquet-testing/data/datapage_v1-corrupt-checksum.parquet": "the page checksum is wrong: " +
		"refused",
	"parquet/duckdb/data/parquet-testing/decimal/byte_array_decimal_empty_value.parquet": "the length of its last value " +
		"was changed by hand, and two bytes of the page are left over: refused",
	"parquet/duckdb/data/parquet-testing/negative-timetz.parquet": "its times of day are " +
		"negative: those records are rejected",
	"parquet/parquet-testing/data/hadoop_lz4_compressed.parquet": "the deprecated LZ4 of " +
		"Hadoop, which the source's tools cannot read",
	"parquet/parquet-testing/data/int96_from_spark.parquet": "one of six timestamps " +
		"overflowed when it was written: that record is rejected",
}

// sharedReason returns the documented rule that explains a file's difference from the manifest, or "".
func sharedReason(f conformance.File, got counted, text []byte) string {
	switch {
	case got.err != nil && (strings.Contains(got.err.Error(), "the file is lzip") ||
		strings.Contains(got.err.Error(), "the file is lzma")):
		return "lzip and .lzma are refused by name"
	case got.err != nil && strings.Contains(got.err.Error(), "the file is empty"):
		return "an empty file has no header and no columns: refused unless --names gives them"
	case got.err != nil && (f.Format == "json" || f.Format == "jsonl"):
		return "a JSON text that holds something other than objects is refused"
	case f.Format == "csv" && mixedLineEnds(text):
		return "a lone CR in a text whose lines end with LF is data"
	case got.err == nil && got.bad > 0 && got.bad == got.quotes:
		return "a record with text after a closing quote, or a quote that never closes, is rejected, not guessed at"
	case f.Expected == "error" && got.err == nil && f.Format == "csv":
		return "the source's tool refuses it for an option or a type; as text it can be read, ragged records are rejected " +
			"when it is loaded"
	}
	return deviations[f.Path]
}

// mixedLineEnds reports whether a text has both LFs and lone CRs.
func mixedLineEnds(text []byte) bool {
	lf, cr := false, false
	for i, c := range text {
		lf = lf || c == '\n'
		cr = cr || c == '\r' && (i+1 == len(text) || text[i+1] != '\n')
	}
	return lf && cr
}

var update = flag.Bool("update", false, "write the results into docs/internals/conformance.md")

// TestEveryFileIsReadAsStated reads every file of the collection. Valid files must have the stated rows, invalid ones
// must be refused, and none may panic. Every difference must have a documented reason.
func TestEveryFileIsReadAsStated(t *testing.T) {
	read := map[string]counted{}
	conformance.Run(t, func(t *testing.T, dir string) {
		results, reasons := conform(t, dir, read)
		if dir == conformance.Whole(t) {
			checkTable(t, results, reasons)
		}
		// The stored part must have enough files of each kind, so that a clone without the collection proves as much.
		for kind, atLeast := range map[string]int{"csv, ok": 100, "csv, error": 20, "json, error": 80, "json, ok": 3,
			"jsonl, ok": 30, "other, error": 23, "parquet, ok": 150, "parquet, error": 15, "text, error": 10} {
			r := results[kind]
			conformance.True(t, (kind == "other, error" || r != nil) && (r == nil || r.files >= atLeast), "%s: %+v", kind, r)
		}
	})
}

// conform reads all files except those in read: the whole collection contains most of the stored part.
func conform(t *testing.T, dir string, read map[string]counted) (results map[string]*result, reasons map[string]int) {
	results, reasons = map[string]*result{}, map[string]int{}
	var before, memory runtime.MemStats
	runtime.ReadMemStats(&before) // memory that other tests have taken
	for _, f := range conformance.Files(t, dir) {
		if f.Expected == "" || f.Format == "doc" || f.Format == "expectation" || f.Format == "zip" {
			continue
		}
		path := filepath.Join(dir, f.Path)
		set := conformance.Try(input.Expand(t.Context(), []string{path}, input.Options{})).Must(t)
		o := optionsOf(f)
		got, again := read[f.Path]
		if !again {
			got = readAll(set.Items[0], o)
			read[f.Path] = got
		}
		if got.err != nil && (strings.Contains(got.err.Error(), "\n") || strings.Contains(got.err.Error(), "runtime error")) {
			t.Errorf("%s: not an error of one line, or a panic: %v", f.Path, got.err)
		}
		if o.Format == Parquet && !again {
			o.Flatten = true
			flat := readAll(set.Items[0], o)
			conformance.True(t, flat.rows+flat.bad == got.rows+got.bad && (flat.err == nil) == (got.err == nil),
				"%s: %+v, and flattened %+v", f.Path, got, flat)
		}
		problem := judge(f, got)
		key := f.Format + ", " + f.Expected
		if results[key] == nil {
			results[key] = new(result)
		}
		results[key].count(got, problem)
		if problem == "" {
			continue
		}
		if why := sharedReason(f, got, conformance.Try(os.ReadFile(path)).Must(t)); why != "" {
			reasons[why]++
			continue
		}
		t.Errorf("%s [%s %s %s]: %s; note: %.90s", f.Path, f.Format, f.Compression, f.Encoding, problem, f.Note)
	}
	runtime.ReadMemStats(&memory)
	took := memory.Sys - before.Sys
	conformance.True(t, took <= 1<<30, "reading the files took %d MiB from the system", took>>20)
	return results, reasons
}

// result counts the files with a given format and expectation.
type result struct{ files, read, refused, differ int }

func (r *result) count(got counted, problem string) {
	r.files++
	switch {
	case problem != "":
		r.differ++
	case got.err != nil || got.rows == 0 && got.bad > 0:
		r.refused++
	default:
		r.read++
	}
}

// checkTable compares the results with the table in the documentation, or writes that table.
func checkTable(t *testing.T, results map[string]*result, reasons map[string]int) {
	var b strings.Builder
	b.WriteString(
		"| format, expected | files | read | refused | differing, with a reason below |\n|---|---|---|---|---|\n")
	for _, k := range slices.Sorted(maps.Keys(results)) {
		r := results[k]
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d |\n", k, r.files, r.read, r.refused, r.differ)
	}
	b.WriteString("\n| files | why they differ from the manifest |\n|---|---|\n")
	for _, k := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Fprintf(&b, "| %d | %s |\n", reasons[k], k)
	}
	const begin, end = "<!-- results -->\n", "<!-- end of results -->\n"
	doc := "../docs/internals/conformance.md"
	old := conformance.Try(os.ReadFile(doc)).Must(t)
	from, to := strings.Index(string(old), begin)+len(begin), strings.Index(string(old), end)
	conformance.MustTrue(t, from >= len(begin) && to >= from, "%s has no place for the results", doc)
	if *update {
		must(t, os.WriteFile(doc, []byte(string(old[:from])+b.String()+string(old[to:])), 0o644))
		return
	}
	conformance.True(t, string(old[from:to]) == b.String(), "%s differs; run with -update. Found:\n%s", doc, b.String())
}

// judge compares a reading with the manifest. It returns "" if they agree, otherwise the difference.
func judge(f conformance.File, got counted) string {
	total := got.rows + got.bad
	switch {
	case got.err != nil && f.Expected == "ok":
		return fmt.Sprintf("refused: %.200v", got.err)
	case got.err != nil:
		return ""
	case f.Expected == "error" && got.rows > 0 && got.bad == 0:
		return fmt.Sprintf("%d rows read", got.rows)
	case f.Expected == "ok" && f.Rows != nil && total != *f.Rows:
		return fmt.Sprintf("%d rows and %d bad records, want %d", got.rows, got.bad, *f.Rows)
	case f.Expected == "ok" && got.bad > 0:
		return fmt.Sprintf("%d rows, %d of them bad", total, got.bad)
	}
	return ""
}

// TestNoFileOfRowsIsMisidentified opens every file without stating its format.
func TestNoFileOfRowsIsMisidentified(t *testing.T) {
	conformance.Run(t, noFileOfRowsIsTakenForSomethingElse)
}

func noFileOfRowsIsTakenForSomethingElse(t *testing.T, dir string) {
	opened := 0
	for _, f := range conformance.Files(t, dir) {
		if f.Expected != "ok" || f.Format == "parquet" || f.Format == "zip" || f.Encoding == "unknown-8bit" ||
			f.Compression == "lzip" || f.Compression == "lzma" { // refused, with the name of their format
			continue
		}
		switch filepath.Base(f.Path) {
		case "COMPRESS-131.bz2", "bla.xml.bz2": // XML
			continue
		case "null_terminator.csv": // two of its six bytes are NULs
			continue
		}
		s, err := Open(t.Context(), found(t, filepath.Join(dir, f.Path)), Options{})
		if err == nil {
			opened++
			s.Close()
			continue
		}
		if text := err.Error(); strings.Contains(text, "cannot be loaded") || strings.Contains(text, "not text") ||
			strings.Contains(text, "without a byte order mark") && !strings.HasPrefix(f.Encoding, "utf-16") {
			t.Errorf("%s (%s): %v", f.Path, f.Encoding, err)
		}
	}
	conformance.True(t, opened >= 100, "only %d files could be opened", opened)
}

// claim is a statement on a page about inputs, with a file in the tree that proves it.
type claim struct {
	says string // quoted from the page, with any white space for line breaks
	file string // path relative to testdata
	o    Options
	want string // columns and records, or "refused: " and part of the error
}

// dialect returns the options of --dialect name, added to others.
func dialect(name string, others ...Options) Options {
	d, _, ok := csv.Named(name)
	if !ok {
		panic(name)
	}
	o := append(others, Options{})[0]
	o.Dialect = d
	return o
}

const apache, dumps = "parquet/parquet-testing/data/", "../../e2e/dumps/made/" // dumps are written by databases

var bare = Options{NoHeader: true}

// claims lists all claims that a single file can prove. In want, a final "…" stands for the rest.
var claims = []claim{
	{"gzip (also multi-member, BGZF)", "made/compressed/baseball.multimember.csv.gz", Options{}, baseball},
	{"gzip (also multi-member, BGZF)", "csv/duckdb/test/concat.gz", Options{}, "…"},
	{"zstd, bzip2, xz, lz4", "made/compressed/baseball.multiframe.csv.zst", Options{}, baseball},
	{"zstd, bzip2, xz, lz4", "made/compressed/baseball.multistream.csv.bz2", Options{}, baseball},
	{"zstd, bzip2, xz, lz4", "made/compressed/baseball.multistream.csv.xz", Options{}, baseball},
	{"zstd, bzip2, xz, lz4", "made/compressed/baseball.multiframe.csv.lz4", Options{}, baseball},
	{"snappy (framed, or one bare block)", "made/compressed/baseball.csv.sz", Options{}, baseball},
	{"snappy (framed, or one bare block)", "made/compressed/baseball.raw.csv.snappy", Options{}, baseball},
	{"lzip, .lzma and others are refused by name", "csv/xz-utils/files/good-1-v0.lz", Options{}, "refused: lzip"},
	{".lzma and others are refused", "csv/xz-utils/files/good-known_size-with_eopm.lzma", Options{}, "refused: lzma"},
	{"zip, 7z, tar, lzip, .lzma and others are refused by name", "made/refused/baseball.zip", Options{}, "refused: zip"},
	{"zip, 7z, tar, lzip, .lzma and others are refused by name", "made/refused/baseball.tar", Options{}, "refused: tar"},
	{"the first bytes: gzip", "made/compressed/baseball.wrong-extension.csv", Options{}, baseball},

	{"a byte order mark (UTF-8, UTF-16, GB18030)", "made/text/utf-8-bom.csv", Options{}, "编号,名称; 1,学生卡"},
	{"a byte order mark (UTF-8, UTF-16, GB18030)", "made/text/utf-16le-bom.csv", Options{}, "编号,名称; 1,学生卡"},
	{"a byte order mark (UTF-8, UTF-16, GB18030)", "made/text/utf-16be-bom.csv", Options{}, "编号,名称; 1,学生卡"},
	{"a byte order mark (UTF-8, UTF-16, GB18030)", "made/text/bom.gb18030.csv", Options{}, "编号,名称; 1,学生卡; 2,𠮷野家"},
	{"UTF-8 otherwise", "made/text/not-utf-8.csv", Options{}, "id,name; 1,Ann; 2,M\xfcller"}, // a load rejects it
	{"`--encoding`", "made/text/not-utf-8.csv", Options{Encoding: "latin1"}, "id,name; 1,Ann; 2,Müller"},

	{"a tab in `.tsv` and `.tab`", "made/text/people.tsv", Options{}, "id,name; 1,A,nn; 2,Bo"},
	{"LF with all CRs before it (CR LF, CR CR LF)", "made/text/crcrlf.csv", Options{}, "id,name; 1,Ann; 2,Bo"},
	{"CR where lines end with CR throughout", "made/text/cr.csv", Options{}, "id,name; 1,Ann; 2,Bo"},
	{"where a header holds a CR outside quotes", "made/text/mixed-header.csv", Options{}, "refused: carriage return"},
	{"`--record-end TEXT`, exactly", "made/text/bcp.txt",
		Options{Dialect: csv.Dialect{Delimiter: "+|", RecordEnd: "&|\n"}}, "id,name; 1,a,b; 2,c\nd"},

	{"objects in sequence (even pretty-printed)", "made/text/pretty.json", Options{}, "id; 1; 2"},
	{"is not a valid object is rejected", "made/text/array.json", Options{}, `id,v; 1,{"b":[1,2]}; 2,; BadJSON`},
	{"A missing comma", "made/text/no-comma.json", Options{}, "refused: at byte 12: want ',' or ']', found '{'"},
	{"an unterminated array fails the load", "made/text/no-end.json", Options{}, "refused: the array has no end"},
	{"The vendor's export lines", "made/text/export.jsonl", Options{}, "…; a,1; b,x"},
	{"a member that comes twice in an object is ambiguous", "made/text/twice.jsonl", Options{}, "id; BadJSON; 3"},

	{"an empty file has no header", "csv/csv-jl/test_empty_file.csv", Options{}, "refused: the file is empty"},
	{"`--format csv` or `jsonl` forces that format", "made/refused/people.xml", Options{Format: CSV},
		`<?xml version="1.0"?>; <people><p id="1">Ann</p></people>`},
	{"gzip has its checksum at the end", "made/compressed/baseball.badcrc.csv.gz", Options{}, "refused: invalid checksum"},
	{"Damaged compressed data", "made/compressed/baseball.badcheck.csv.zst", Options{}, "refused: CRC"},
	{"Damaged compressed data", "made/compressed/baseball.truncated.csv.bz2", Options{}, "refused: cut short"},
	{"Damaged compressed data", "made/compressed/baseball.trailing-garbage.csv.gz", Options{}, "refused: data after"},

	{"| `mysql-batch` |", dumps + "mysql-batch.txt", dialect("mysql-batch", bare), "…"},
	{"| `mysql-tab` |", dumps + "mysql-tab.txt", dialect("mysql-tab", bare), "…"},
	{"| `mysql` | either, detected in the file", dumps + "mysql-tab.txt", dialect("mysql", bare), "…"},
	{"| `postgres` |", dumps + "postgres.txt", dialect("postgres", bare), "…"},
	{"| `postgres-csv` |", dumps + "postgres.csv", dialect("postgres-csv"), "…"},
	{"| `sqlite` |", dumps + "sqlite.csv", dialect("sqlite"), "…"},
	{"| `sqlite-quote` |", dumps + "sqlite-quote.txt", dialect("sqlite-quote"), "…"},
	{"`TabSeparatedWithNames`", "made/text/clickhouse.tsv", dialect("clickhouse"), "id,name,v; 1,a\tb,; 2,\\qc,x"},
	{"`CSVWithNames`, `…WithNamesAndTypes`", "made/text/clickhouse.csv", dialect("clickhouse-csv"),
		"id,name,v; 1,a \"b\",\\N"},
	{"has a line of types", "made/text/clickhouse.tsv", dialect("clickhouse-types"), "id,name,v; 1,a\tb,; 2,\\qc,x"},
	{"has a line of types", "made/text/clickhouse.tsv", dialect("clickhouse-names"),
		"id,name,v; UInt64,String,Nullable(String); 1,a\tb,; 2,\\qc,x"},
	{"has a line of types", "made/text/clickhouse.csv", dialect("clickhouse-csv-types"), "id,name,v; 1,a \"b\",\\N"},
	{"has a line of types", "made/text/clickhouse.csv", dialect("clickhouse-csv-names"),
		"id,name,v; UInt64,String,Nullable(String); 1,a \"b\",\\N"},
	{"`ESCAPED BY '\\'`", "made/text/hive-escaped.txt", dialect("hive-escaped", bare), "c1,c2,c3; 1,a\x01b,; 2,c\nd,"},
	{"text tables without", "made/text/hive-plain.txt", dialect("hive-plain", bare), "c1,c2,c3; 1,a\\b,\\N; 2,c\\,d"},
	{"records that depend on the answer", "made/text/hive-doubt.txt", dialect("hive", bare),
		"c1,c2,c3; AmbiguousEscape; 2,e,f"},
	{"CSV of Excel, with or without a first line `sep=;`", "made/text/excel.csv", dialect("excel"), "id,name; 1,a;b"},

	{"page checksum is wrong", apache + "datapage_v1-corrupt-checksum.parquet", Options{}, "refused: page checksum"},
	{"bytes follow a column's last page",
		"parquet/duckdb/data/parquet-testing/decimal/byte_array_decimal_empty_value.parquet", Options{},
		"refused: page holds more values than"},
	{"INT96 nanoseconds outside a day", apache + "int96_from_spark.parquet", Options{}, "…; OutOfRange…"},
	{"compression LZ4 (deprecated) | read", apache + "hadoop_lz4_compressed.parquet", Options{},
		"c0,c1,v11; 1593604800,abc,42; 1593604800,def,7.7; 1593604801,abc,42.125; 1593604801,def,7.7"},
	{"Encryption, LZO, and values in other files are refused",
		"parquet/duckdb/data/parquet-testing/encryption/encrypted_footer.parquet", Options{}, "refused: encrypted"},
}

const baseball = "Rk,Year,Age,Tm,Lg,c6,W,L,W-L%,G,Finish,Wpost,Lpost,W-L%post,c15; 1,1978,37,Atlanta Braves,NL,,69,93,…"

// inputPages lists the pages that make the claims.
var inputPages = []string{"inputs.md", "types.md", "dumps.md", "parquet-arrow.md", "internals/conformance.md"}

// TestFilesProveClaimsOfInputPages finds each claim on a page about inputs and checks that its file proves the claim.
func TestFilesProveClaimsOfInputPages(t *testing.T) {
	var page string
	for _, name := range inputPages {
		text := conformance.Try(os.ReadFile(filepath.Join("../docs", name))).Must(t)
		page += strings.Join(strings.Fields(string(text)), " ") + " "
	}
	for _, c := range claims {
		t.Run(c.file+" "+c.o.Dialect.Name, func(t *testing.T) {
			conformance.Contains(t, page, c.says, "a page about inputs (change the claim, and the file if need be)")
			got := recordsOf(found(t, filepath.Join("testdata", c.file)), c.o)
			conformance.True(t, isLike(got, c.want) && (strings.Contains(got, ": ") || strings.Contains(got, "; ")),
				"it gives %.300q, want %q", got, c.want)
		})
	}
}

// recordsOf reads a source to its end as a load would. It returns the columns and each record's values or reject code.
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

// isLike compares got with want, in which … matches anything. A refusal only needs to contain the wanted text.
func isLike(got, want string) bool {
	if reason, ok := strings.CutPrefix(want, "refused: "); ok {
		return strings.HasPrefix(got, "refused: ") && strings.Contains(got, reason)
	}
	if strings.HasPrefix(got, "refused: ") {
		return false
	}
	like := strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*")
	return got == want || strings.Contains(want, "…") && regexp.MustCompile("(?s)^"+like+"$").MatchString(got)
}

// TestEveryDialectHasAFile checks that a claim exists for each dialect of csv.Named.
func TestEveryDialectHasAFile(t *testing.T) {
	for _, name := range csv.Programs {
		conformance.True(t, slices.ContainsFunc(claims, func(c claim) bool { return c.o.Dialect.Name == name }),
			"no file of docs/inputs.md's claims is read with --dialect %s", name)
	}
}
