//go:build e2e

package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	pzstd "github.com/parquet-go/parquet-go/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// besideMemory is how much more than --memory a command may take: the program itself, and what the runtime keeps. Kernels differ in how much
// of the program's file counts as its memory, although they can drop it, 35 MiB or all of it, which a command shows that does nearly nothing.
func besideMemory(idle int64) int64 { return max(64<<20, idle+8<<20) }

// tries is how often a command may take more than it may at first: on a machine that is busy with something else, what is garbage is found
// late.
const tries = 3

// everyMemoryFile makes the tests of memory take seconds more; the others are a sample of them.
var everyMemoryFile = flag.Bool("every-memory-file", false, "measure the memory that every hostile file takes, and what every command allocates")

// sampled skips a file that only make memory measures.
func sampled(t *testing.T) {
	switch path.Base(t.Name()) {
	case "one_dictionary_value_of_8_MiB_for_100_rows", "an_endless_line_with_the_least_memory", "one_dictionary_value_of_8_MiB_for_30_rows":
	default:
		if !*everyMemoryFile {
			t.Skip("measured by make memory")
		}
	}
}

// TestALoadStaysWithinItsMemory loads files that would take much more memory if anything of them were held unchecked. The
// table is a server in a process of its own.
func TestALoadStaysWithinItsMemory(t *testing.T) {
	t.Setenv("TABLESTORE_ACCESS_KEY_ID", "null")
	t.Setenv("TABLESTORE_ACCESS_KEY_SECRET", "null")
	url := startNull(t)
	load := func(t *testing.T, path, run string, memory int) (s memorySummary, code int, out string) {
		peak, code, out := runMeasured(t, "load", path, "--endpoint", url, "--instance", "null", "--table", "t", "--create",
			"--pk", "id:integer", "--run-dir", run, "--max-errors", "-1", "--memory", fmt.Sprintf("%dMiB", memory))
		report, err := os.ReadFile(filepath.Join(run, "summary.json"))
		if code != 0 && errors.Is(err, fs.ErrNotExist) { // refused before the run began
			return memorySummary{Peak: peak}, code, out
		}
		if err != nil {
			t.Fatalf("%v in:\n%.2000s", err, out)
		}
		must(t, json.Unmarshal(report, &s))
		return s, code, out
	}
	small := filepath.Join(t.TempDir(), "a.csv")
	writeFile(t, small, func(w io.Writer) { io.WriteString(w, "id\n1\n") })
	idle, _, _ := load(t, small, filepath.Join(t.TempDir(), "run"), 16)
	beyond := besideMemory(idle.Peak)
	t.Logf("one row takes %d MiB", idle.Peak>>20)
	for _, test := range []struct {
		name              string
		file              string
		write             func(io.Writer)
		memory            int // MiB; 0 is 64
		code              int
		written, rejected int64
		says              string // in the errors and messages
	}{
		{"80 values of 1 MB in Parquet", "a.parquet", func(w io.Writer) { writeValues(w, 80, 1<<20, true) }, 0, 0, 80, 0, ""},
		{"one dictionary value of 8 MiB for 100 rows", "a.parquet", func(w io.Writer) { writeValues(w, 100, 8<<20, false) }, 0, 3, 0, 100, ""},
		{"one dictionary value of 60 MiB for 100 rows", "a.parquet", func(w io.Writer) { writeValues(w, 100, 60<<20, false) }, 0, 1, 0, 0, "give more with --memory"},
		{"a list of 60 equal values", "a.parquet", writeList, 0, 3, 0, 1, ""},
		{"60 columns with a value of 1 MiB each", "a.parquet", writeWide, 256, 3, 0, 40, ""},
		{"120 values of 1 MB in CSV", "a.csv", func(w io.Writer) { writeText(w, 120, 1<<20, "%d,%s\n", "id,v\n") }, 0, 0, 120, 0, ""},
		{"120 values of 1 MB in JSON lines", "a.jsonl", func(w io.Writer) { writeText(w, 120, 1<<20, `{"id":%d,"v":"%s"}`+"\n", "{\"id\":0,\"v\":\"x\"}\n") }, 0, 0, 121, 0, ""},
		{"40 values of 3 MB in CSV", "a.csv", func(w io.Writer) { writeText(w, 40, 3<<20, "%d,%s\n", "id,v\n") }, 0, 3, 0, 40, ""},
		{"an endless record in CSV", "a.csv", func(w io.Writer) { writeEndless(w, "id,v\n1,x\n2,\"") }, 0, 2, 1, 0, "look for a quote that never closes"},
		{"an endless line in CSV", "a.csv", func(w io.Writer) { writeEndless(w, "id,v\n1,x\n2,") }, 0, 3, 1, 1, "memory allows 8 MiB"},
		{"an endless line with the least memory", "a.csv", func(w io.Writer) { writeEndless(w, "id,v\n1,x\n2,") }, 16, 3, 1, 1, "memory allows 6 MiB"},
		{"a long line of JSON between others", "a.jsonl", func(w io.Writer) {
			writeEndless(w, "{\"id\":1,\"v\":\"x\"}\n{\"id\":2,\"v\":\"")
			io.WriteString(w, "\"}\n{\"id\":3,\"v\":\"x\"}\n")
		}, 0, 3, 2, 1, "memory allows 8 MiB"},
		{"an endless record in gzip", "a.csv.gz", func(w io.Writer) {
			z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
			writeEndless(z, "id,v\n1,x\n2,")
			z.Close()
		}, 0, 3, 1, 1, "memory allows 8 MiB"},
		{"an endless record in zstd", "a.csv.zst", func(w io.Writer) {
			z, _ := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest))
			writeEndless(z, "id,v\n1,x\n2,")
			z.Close()
		}, 0, 3, 1, 1, "memory allows 8 MiB"},
		{"a record of nothing but delimiters", "a.csv", func(w io.Writer) {
			fmt.Fprintf(w, "id,v\n1,x\n%s\n2,x\n", strings.Repeat(",", 7<<20))
		}, 0, 3, 2, 1, ""},
		{"rejected records of two bytes", "a.csv", func(w io.Writer) {
			fmt.Fprintf(w, "id,v\n%s", strings.Repeat("x\n", 100_000))
		}, 0, 3, 0, 100_000, ""},
		{"an endless record in lz4", "a.csv.lz4", func(w io.Writer) {
			z := lz4.NewWriter(w)
			z.Apply(lz4.BlockSizeOption(lz4.Block4Mb))
			writeEndless(z, "id,v\n1,x\n2,")
			z.Close()
		}, 0, 3, 1, 1, "memory allows 8 MiB"},
		{"an endless record in bzip2", "a.csv.bz2", func(w io.Writer) { writeMembers(w, bzip2Head, 1); writeMembers(w, bzip2Member, 10) },
			0, 3, 1, 1, "memory allows 8 MiB"},
		{"an endless record in xz", "a.csv.xz", func(w io.Writer) { writeMembers(w, xzHead, 1); writeMembers(w, xzMember, 80) },
			0, 3, 1, 1, "memory allows 8 MiB"},
		{"a page that says it is 2 GiB long", "a.parquet", func(w io.Writer) { writeLie(w, 130<<20, 1<<31-1) }, 0, 1, 0, 0, "give more with --memory"},
		{"a page that says it is 1 MiB long and is 60", "a.parquet", func(w io.Writer) { writeLie(w, 60<<20, 1<<20) }, 0, 1, 0, 0, "decompressed size exceeds"},
		{"1000 columns", "a.csv", func(w io.Writer) { writeColumns(w, 3000) }, 0, 0, 3000, 0, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			sampled(t)
			dir := t.TempDir()
			path := filepath.Join(dir, test.file)
			writeFile(t, path, test.write)
			memory := cmp.Or(test.memory, 64)
			var summary memorySummary
			var code int
			var out string
			for try := 1; try <= tries; try++ {
				summary, code, out = load(t, path, filepath.Join(dir, fmt.Sprint("run", try)), memory)
				t.Logf("peak %d MiB, %d written, %d rejected", summary.Peak>>20, summary.Written, summary.Rejected)
				if summary.Peak <= int64(memory<<20)+beyond {
					break
				}
				if try == tries {
					t.Errorf("peak of %d MiB with --memory %dMiB, %d times", summary.Peak>>20, memory, tries)
				}
			}
			if code != test.code || !strings.Contains(out, test.says) ||
				summary.Written != test.written || summary.Rejected != test.rejected {
				t.Errorf("exit code %d, %d written, %d rejected; want %d, %d, %d and %q in:\n%.2000s",
					code, summary.Written, summary.Rejected, test.code, test.written, test.rejected, test.says, out)
			}
		})
	}
}

// memorySummary is what the test of memory reads of a summary.
type memorySummary struct {
	Peak     int64 `json:"peak_rss_bytes"` // VmHWM
	Rejected int64 `json:"rejected"`
	Written  int64 `json:"written"`
}

func writeFile(t testing.TB, path string, write func(io.Writer)) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	write(f)
	must(t, f.Close())
}

// writeValues writes rows with a value of n bytes, which differ in every row or are one entry of a dictionary.
func writeValues(w io.Writer, rows, n int, differ bool) {
	group := parquet.Group{"id": parquet.Leaf(parquet.Int64Type), "v": parquet.Encoded(parquet.String(), &parquet.RLEDictionary)}
	options := []parquet.WriterOption{parquet.Compression(&pzstd.Codec{}), parquet.SkipPageBounds("v"), parquet.DataPageStatistics(false)}
	if differ {
		group["v"], options = parquet.Encoded(parquet.String(), &parquet.Plain), options[1:]
	}
	p := parquet.NewWriter(w, append(options, parquet.NewSchema("values", group))...)
	v := parquet.ByteArrayValue(bytes.Repeat([]byte("a"), n)).Level(0, 0, 1)
	for i := range rows {
		if differ {
			v = parquet.ByteArrayValue([]byte(randomText(n))).Level(0, 0, 1)
		}
		p.WriteRows([]parquet.Row{{parquet.Int64Value(int64(i)).Level(0, 0, 0), v}})
		if differ && i%10 == 9 {
			p.Flush()
		}
	}
	p.Close()
}

// writeList writes one row with a list of equal values.
func writeList(w io.Writer) {
	schema := parquet.NewSchema("list", parquet.Group{
		"id": parquet.Leaf(parquet.Int64Type), "v": parquet.Repeated(parquet.Encoded(parquet.String(), &parquet.RLEDictionary)),
	})
	p := parquet.NewWriter(w, schema, parquet.Compression(&pzstd.Codec{}), parquet.SkipPageBounds("v"), parquet.DataPageStatistics(false))
	row := parquet.Row{parquet.Int64Value(1).Level(0, 0, 0)}
	text := bytes.Repeat([]byte("b"), 2<<20)
	for i := range 60 {
		row = append(row, parquet.ByteArrayValue(text).Level(min(i, 1), 1, 1))
	}
	p.WriteRows([]parquet.Row{row})
	p.Close()
}

// writeWide writes rows of which every one is far larger than the service takes.
func writeWide(w io.Writer) {
	group := parquet.Group{"id": parquet.Leaf(parquet.Int64Type)}
	options := []parquet.WriterOption{parquet.Compression(&pzstd.Codec{}), parquet.DataPageStatistics(false)}
	for c := range 60 {
		name := fmt.Sprintf("v%02d", c)
		group[name] = parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
		options = append(options, parquet.SkipPageBounds(name))
	}
	p := parquet.NewWriter(w, append(options, parquet.NewSchema("wide", group))...)
	v := parquet.ByteArrayValue(bytes.Repeat([]byte("c"), 1<<20))
	for i := range 40 {
		row := parquet.Row{parquet.Int64Value(int64(i)).Level(0, 0, 0)}
		for c := range 60 {
			row = append(row, v.Level(0, 0, c+1))
		}
		p.WriteRows([]parquet.Row{row})
	}
	p.Close()
}

func writeText(w io.Writer, rows, n int, format, header string) {
	io.WriteString(w, header)
	text := randomText(n)
	for i := range rows {
		fmt.Fprintf(w, format, i, text)
	}
}

func writeEndless(w io.Writer, begin string) {
	io.WriteString(w, begin)
	for range 80 {
		io.WriteString(w, strings.Repeat("endless ", 1<<17))
	}
}

func writeColumns(w io.Writer, rows int) {
	io.WriteString(w, "id")
	for i := range 1000 {
		fmt.Fprintf(w, ",a_column_with_a_long_name_%d", i)
	}
	for i := range rows {
		fmt.Fprintf(w, "\n%d%s", i, strings.Repeat(",7", 1000))
	}
	io.WriteString(w, "\n")
}

func randomText(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[rand.IntN(len(letters))]
	}
	return string(b)
}
