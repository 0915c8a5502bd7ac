package reader

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// pgDump returns a dump of a table with this many rows between other tables.
func pgDump(rows int) []byte {
	var b bytes.Buffer
	b.WriteString("--\n-- PostgreSQL database dump\n--\n\nCREATE TABLE public.a (x int);\nCREATE TABLE public.t (\n" +
		"    id integer NOT NULL,\n    v text,\n    raw bytea\n);\n\nCOPY public.a (x) FROM stdin;\n" +
		strings.Repeat("1\n", rows) + "\\.\n\nCOPY public.t (id, v, raw) FROM stdin;\n")
	for i := range rows {
		fmt.Fprintf(&b, "%d\ta\\tb\\\\%d\\n\t\\\\x%02x\n", i, i, i%256)
	}
	b.WriteString("\\.\n\nCOPY public.b (x) FROM stdin;\n" + strings.Repeat("1\n", rows) +
		"\\.\n\nALTER TABLE ONLY public.t\n    ADD CONSTRAINT t_pkey PRIMARY KEY (id);\n\n--\n-- PostgreSQL database dump " +
		"complete\n--\n")
	return b.Bytes()
}

// mysqlDump returns such a dump by mysqldump, with each rows per statement.
func mysqlDump(rows, each int) []byte {
	var b bytes.Buffer
	b.WriteString("-- MySQL dump 10.13  Distrib 8.0.36\n\nCREATE TABLE `a` (`x` int);\n" +
		strings.Repeat("INSERT INTO `a` VALUES (1);\n", rows) + "CREATE TABLE `t` (\n  `id` int NOT NULL,\n  `v` text,\n" +
		"  `raw` blob,\n  PRIMARY KEY (`id`)\n);\nLOCK TABLES `t` WRITE;\n")
	for i := range rows {
		if i%each == 0 {
			b.WriteString("INSERT INTO `t` VALUES ")
		}
		fmt.Fprintf(&b, "(%d,'a\\tb\\\\%d\\n',_binary '", i, i)
		switch c := byte(i % 256); c {
		case 0:
			b.WriteString(`\0`)
		case '\'', '\\':
			b.Write([]byte{'\\', c})
		default:
			b.WriteByte(c)
		}
		b.WriteString("')" + map[bool]string{true: ";\n", false: ","}[i%each == each-1 || i == rows-1])
	}
	b.WriteString("UNLOCK TABLES;\nCREATE TABLE `b` (`x` int);\nINSERT INTO `b` VALUES (1)" +
		strings.Repeat(",\n(1)", rows-1) + ";\n-- Dump completed on 2024-01-01\n")
	return b.Bytes()
}

func gzipped(text []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(text)
	w.Close()
	return b.Bytes()
}

func TestDumpsKeepSourceContract(t *testing.T) {
	for name, text := range dumpsOf(900) {
		for form, item := range map[string]func() input.Item{"a file": fileOf(t, "in.sql", text),
			"gzip": fileOf(t, "in.sql.gz", gzipped(text)), "frames of zstd": fileOf(t, "in.sql.zst",
				zstdFrames(t, text, 4_000))} {
			t.Run(name+" in "+form, func(t *testing.T) {
				keepsTheContract(t, item, Options{SplitBytes: 2_000, Named: Named{Table: "t"}})
			})
		}
	}
}

// dumpsOf returns dumps of the same rows by each program.
func dumpsOf(rows int) map[string][]byte {
	return map[string][]byte{"pg_dump": pgDump(rows), "mysqldump": mysqlDump(rows, 7), "in one": mysqlDump(rows, rows)}
}

func TestDumpGivesRowsOfTable(t *testing.T) {
	for name, text := range dumpsOf(500) {
		for _, size := range []int{20, 333, 100_000} {
			for form, item := range map[string]input.Item{"a file": itemOf(t, "in.sql", text),
				"gzip": itemOf(t, "in.sql.gz", gzipped(text))} {
				r, err := readFrom(item, Options{Named: Named{Table: "t"}, SplitBytes: size}, nil, source.Chain{})
				conformance.True(t, err == nil && len(r.records) == 500 && r.records[499] == "499|a\tb\\499\n|\xf3" &&
					r.records[0] == "0|a\tb\\0\n|\x00",
					"%s, %s, %d: %d records, %v", name, form, size, len(r.records), err)
			}
		}
		s := opened(t, itemOf(t, "in.sql", text), Options{Named: Named{Table: "t"}})
		about := s.About()
		conformance.Equal(t, fmt.Sprint(about.Declared.Key, about.Declared.Types), "[id] [integer string binary]", "%s", name)
		if len(about.Notes) != 1 || !strings.Contains(about.Notes[0], "t, 500 rows; skipped: 2 other tables with 1000 rows") {
			t.Errorf("%s: notes %q", name, about.Notes)
		}
	}
}

func TestTruncatedDumpFailsAfterItsRows(t *testing.T) {
	for name, text := range dumpsOf(500) {
		at := bytes.Index(text, []byte("499")) - 10
		for _, n := range []int{at, bytes.LastIndex(text, []byte("1")) - 200, len(text) - 60} {
			for form, item := range map[string]input.Item{"a file": itemOf(t, "in.sql", text[:n]),
				"gzip": itemOf(t, "in.sql.gz", gzipped(text[:n]))} {
				r, err := readFrom(item, Options{Named: Named{Table: "t"}, SplitBytes: 700}, nil, source.Chain{})
				want := map[bool]int{true: 499, false: 500}[n == at]
				conformance.True(t, err != nil && strings.Contains(err.Error(), "incomplete") && len(r.records) >= want-30 &&
					len(r.records) <= want, "%s, %s, %d bytes: %d records, %v", name, form, n, len(r.records), err)
			}
		}
	}
}

func TestDumpTruncatedBeforeKeyGivesHint(t *testing.T) {
	for name, text := range dumpsOf(500) {
		s := opened(t, itemOf(t, "in.sql", text[:bytes.Index(text, []byte("499"))-10]), Options{Named: Named{Table: "t"}})
		about := s.About()
		has := len(about.Declared.Key) > 0
		conformance.True(t, has != (about.Hint != "") && (about.Hint == "" || strings.Contains(about.Hint, "incomplete")),
			"%s: key %q, hint %q", name, about.Declared.Key, about.Hint)
		conformance.Equal(t, s.EncodingHint([]byte("caf\xe9")), "", "%s takes no --encoding", name)
	}
}

func TestMysqldumpTabSchemaErrorNamesRowFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "t.sql")
	must(t,
		os.WriteFile(name, []byte("-- MySQL dump\nCREATE TABLE `t` (\n  `id` int,\n  `v` text\n);\n-- Dump completed\n"),
			0o644))
	must(t, os.WriteFile(filepath.Join(dir, "t.txt"), []byte("1\ta\n"), 0o644))
	_, err := Open(t.Context(), found(t, name), Options{})
	conformance.Refused(t, err, "t.txt; load that with --dialect mysql-tab --no-header --names 'id,v'", "error")
}

func TestDamagedDumpFailsAfterGoodRows(t *testing.T) {
	for name, text := range dumpsOf(5_000) {
		packed := gzipped(text)
		item := itemOf(t, "in.sql.gz", packed[:2*len(packed)/3])
		r, err := readFrom(item, Options{Named: Named{Table: "t"}, SplitBytes: 700}, nil, source.Chain{})
		conformance.True(t, err != nil && strings.Contains(err.Error(), "unexpected EOF") && len(r.records) != 0 &&
			len(r.records) < 5_000, "%s: %d records, %v", name, len(r.records), err)
		_, err = Open(t.Context(), item, Options{Named: Named{Table: "b"}})
		conformance.True(t, err != nil && strings.Contains(err.Error(), "unexpected EOF") &&
			strings.Contains(err.Error(), "no such table"), "%s: %v", name, err)
	}
}

func TestOverlongDumpRowIsRefused(t *testing.T) {
	limit := Memory{RecordBytes: 1 << 20}
	long := strings.Repeat("x", 3<<20)
	for name, tt := range map[string]struct {
		text string
		rows int
		want string
	}{
		"mysqldump": {"-- MySQL dump\nCREATE TABLE `t` (`v` text);\nINSERT INTO `t` VALUES ('a'),('" + long +
			"'),('b');\n-- Dump completed\n", 1, "is longer than 1 MiB; give more memory"},
		// Only one of the rows is rejected.
		"pg_dump": {"--\n-- PostgreSQL database dump\n--\nCREATE TABLE t (v text);\nCOPY t (v) FROM stdin;\na\n" + long +
			"\nb\n\\.\n--\n-- PostgreSQL database dump complete\n--\n", 3, ""},
	} {
		r, err := readFrom(itemOf(t, "in.sql", []byte(tt.text)), Options{Memory: limit, SplitBytes: 1e5}, nil, source.Chain{})
		conformance.True(t, len(r.records) == tt.rows && (tt.want != "" || err == nil) &&
			(tt.want == "" || err != nil && strings.Contains(err.Error(), tt.want)),
			"%s: %d records, %v", name, len(r.records), err)
	}
}

func TestUnreadableDumpsAreRefused(t *testing.T) {
	text := pgDump(3)
	for name, tt := range map[string]struct {
		item input.Item
		o    Options
		want string
	}{
		"a stream": {streamOf(t, text), Options{}, "save it to a file first"},
		"UTF-16": {itemOf(t, "in.sql", []byte("\xff\xfe"+utf16le(string(text)))), Options{Format: PGDump},
			"PowerShell"},
		"several tables": {itemOf(t, "in.sql", text), Options{}, "say which with --source-table"},
		"no such table": {itemOf(t, "in.sql", text), Options{Named: Named{Table: "x"}},
			"the dump has no such table; it has public.a, public.t, public.b"},
		"a table of CSV": {itemOf(t, "in.csv", []byte("a\n1\n")), Options{Named: Named{Table: "x"}},
			"--source-table x: the file is csv, not a dump"},
		"a table of Arrow": {itemOf(t, "in.arrow", arrowBytes(t, "many.arrow")), Options{Named: Named{Table: "x"}},
			"--source-table x: the file is arrow, not a dump"},
		"something else in it": {itemOf(t, "in.sql", append(bytes.Clone(text), "\n\\! ls\n"...)), Options{},
			"not a command of a dump"},
	} {
		conformance.Refused(t, conformance.ErrorOf(Open(t.Context(), tt.item, tt.o)), tt.want, "%s", name)
	}
}

func TestRejectedDumpRowIsNotLoadable(t *testing.T) {
	text := bytes.Replace(pgDump(3), []byte("\n1\ta"), []byte("\nx\ta"), 1)
	s := opened(t, itemOf(t, "in.sql", text), Options{Named: Named{Table: "t"}})
	p := s.NewParser(nil)
	var bad []string
	must(t, eachSplit(s, func(sp source.Split) error {
		_, _, err := p.Parse(sp, func(r *record.Record) {
			if r.Bad != nil {
				bad = append(bad, fmt.Sprintf("%s %s %d %v", r.Bad.Code, r.Bad.Column, len(r.Fields), s.Raw(sp, r.Span)))
			}
		})
		return err
	}))
	conformance.True(t, len(bad) == 1 && bad[0] == "WrongType id 0 []", "%q", bad)
}
