//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"tsimport/bench"
)

// BenchmarkALoadOfEachFormat loads the same rows of 12 columns from a file of each format into a server in a process of its
// own that answers success. CPU is the load's, from the start of its process to the end.
func BenchmarkALoadOfEachFormat(b *testing.B) {
	const rows = 500_000
	files := writeFormats(b, b.TempDir(), rows)
	b.Setenv("TABLESTORE_ACCESS_KEY_ID", "null")
	b.Setenv("TABLESTORE_ACCESS_KEY_SECRET", "null")
	url := startNull(b)
	for _, file := range files {
		b.Run(filepath.Base(file), func(b *testing.B) {
			var cpu []float64
			var last struct {
				Written int64   `json:"written"`
				CPU     float64 `json:"cpu_seconds"`
				Seconds float64 `json:"seconds"`
				Peak    int64   `json:"peak_rss_bytes"`
			}
			for b.Loop() {
				stdout := newPlace(b).output("load", file, "--endpoint", url, "--instance", "null", "--table", "t", "--create", "--pk", "id:integer", "--json", "--quiet")
				if must(b, json.Unmarshal([]byte(stdout), &last)); last.Written != rows {
					b.Fatalf("%d rows", last.Written)
				}
				cpu = append(cpu, last.CPU*1e6/rows)
			}
			slices.Sort(cpu)
			info, err := os.Stat(file)
			must(b, err)
			b.ReportMetric(cpu[(len(cpu)-1)/2], "cpu-µs/row")
			b.ReportMetric(rows/last.Seconds, "rows/s")
			b.ReportMetric(float64(last.Peak)/(1<<20), "peak-MiB")
			b.ReportMetric(float64(info.Size())/1e6, "file-MB")
		})
	}
}

// startNull starts a server that answers success until the end of the test, and returns its URL.
func startNull(t testing.TB) string {
	cmd := exec.Command(binary, "bench", "null-server")
	out, err := cmd.StdoutPipe()
	must(t, err)
	in, err := cmd.StdinPipe() // its end is the server's
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("null server: %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "url=")
	if err != nil || !ok {
		t.Fatalf("null server says %q, %v", line, err)
	}
	return url
}

// writeFormats writes the same rows in each format and returns the files.
func writeFormats(t testing.TB, dir string, rows uint64) (files []string) {
	t.Helper()
	shape, err := bench.FindShape("12")
	must(t, err)
	var text, gz, zst, lines, columns bytes.Buffer
	must(t, shape.WriteCSV(t.Context(), &text, rows, 1))
	g := gzip.NewWriter(&gz)
	z, err := zstd.NewWriter(&zst)
	must(t, err)
	_, gErr := g.Write(text.Bytes())
	_, zErr := z.Write(text.Bytes())
	for _, err := range []error{gErr, zErr, g.Close(), z.Close()} {
		must(t, err)
	}
	records := csv.NewReader(bytes.NewReader(text.Bytes()))
	records.ReuseRecord = true
	group := parquet.Group{}
	for _, c := range shape.Columns {
		group[c.Name] = []parquet.Node{bench.IntegerValues: parquet.Int(64), bench.DoubleValues: parquet.Leaf(parquet.DoubleType), bench.StringValues: parquet.String()}[c.Kind]
	}
	schema := parquet.NewSchema("row", group)
	p := parquet.NewGenericWriter[any](&columns, schema, parquet.Compression(&parquet.Snappy), parquet.MaxRowsPerRowGroup(50_000))
	if _, err := records.Read(); err != nil { // the header
		t.Fatal(err)
	}
	row := make(parquet.Row, len(shape.Columns))
	for range rows {
		fields, err := records.Read()
		must(t, err)
		for i, c := range shape.Columns {
			lines.WriteString([]string{`{"`, `,"`}[min(i, 1)] + c.Name + `":`)
			leaf, _ := schema.Lookup(c.Name)
			value := fields[i]
			switch c.Kind {
			case bench.IntegerValues:
				n, _ := strconv.ParseInt(value, 10, 64)
				row[leaf.ColumnIndex] = parquet.Int64Value(n).Level(0, 0, leaf.ColumnIndex)
			case bench.DoubleValues:
				f, _ := strconv.ParseFloat(value, 64)
				row[leaf.ColumnIndex] = parquet.DoubleValue(f).Level(0, 0, leaf.ColumnIndex)
			default:
				row[leaf.ColumnIndex] = parquet.ByteArrayValue([]byte(value)).Level(0, 0, leaf.ColumnIndex)
				value = strconv.Quote(value)
			}
			lines.WriteString(value)
		}
		lines.WriteString("}\n")
		if _, err := p.WriteRows([]parquet.Row{row}); err != nil {
			t.Fatal(err)
		}
	}
	must(t, p.Close())
	for _, f := range []struct {
		name    string
		content *bytes.Buffer
	}{{"rows.csv", &text}, {"rows.csv.gz", &gz}, {"rows.csv.zst", &zst}, {"rows.jsonl", &lines}, {"rows.parquet", &columns}} {
		path := filepath.Join(dir, f.name)
		must(t, os.WriteFile(path, f.content.Bytes(), 0o644))
		files = append(files, path)
	}
	return files
}

// TestEveryFormatIsLoadedWhole: the files of each kind hold the same rows. Arrow comes as files, streams and on standard input.
func TestEveryFormatIsLoadedWhole(t *testing.T) {
	t.Parallel()
	s := startServe(t, "--memory")
	p := newPlace(t, s.env()...)
	arrow, err := filepath.Abs(filepath.Join("..", "reader", "arrow", "testdata"))
	must(t, err)
	arrow += string(filepath.Separator)
	arrows := []string{arrow + "many.arrow", arrow + "many_zstd.arrows", "<" + arrow + "many.arrows", "<" + arrow + "many_lz4.arrow"}
	for rows, files := range map[int][]string{2000: writeFormats(t, p.dir, 2000), 400: arrows} {
		first := ""
		for i, file := range files {
			table := fmt.Sprintf("t%d_%d", rows, i)
			from, stdin := strings.CutPrefix(file, "<")
			args := []string{"load", from, "--table", table, "--create", "--pk", "id:integer", "--quiet"}
			if stdin {
				args[1] = "-"
			}
			cmd := p.command(args...)
			if stdin {
				in, err := os.Open(from)
				must(t, err)
				defer in.Close()
				cmd.Stdin = in
			}
			if r := begin(t, cmd); r.wait() != 0 {
				t.Fatalf("%s: %v\n%s", file, r.ProcessState, &r.said)
			}
			got := p.output("export", "--table", table, "--format", "jsonl")
			if first == "" {
				first = got
			}
			if strings.Count(got, "\n") != rows || got != first || rows == 400 && !strings.Contains(got, `"at":"{\"a\":1,\"b\":\"view of row number 1\"}"`) {
				t.Errorf("%s: %d rows, the same as the first: %v; %.200s", file, strings.Count(got, "\n"), got == first, got)
			}
		}
	}
}
