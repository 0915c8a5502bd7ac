//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
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
				stdout, stderr, code := runBinary(b, "load", file, "--endpoint", url, "--instance", "null", "--table", "t", "--create", "--pk", "id:integer",
					"--run-dir", filepath.Join(b.TempDir(), "run"), "--fresh", "--json", "--quiet")
				if err := json.Unmarshal([]byte(stdout), &last); err != nil || code != 0 || last.Written != rows {
					b.Fatalf("exit code %d, %d rows, %v: %s", code, last.Written, err, stderr)
				}
				cpu = append(cpu, last.CPU*1e6/rows)
			}
			slices.Sort(cpu)
			info, err := os.Stat(file)
			if err != nil {
				b.Fatal(err)
			}
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
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe() // its end is the server's
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	var text, gz, zst, lines, columns bytes.Buffer
	if err := shape.WriteCSV(t.Context(), &text, rows, 1); err != nil {
		t.Fatal(err)
	}
	g := gzip.NewWriter(&gz)
	z, err := zstd.NewWriter(&zst)
	if err != nil {
		t.Fatal(err)
	}
	_, gErr := g.Write(text.Bytes())
	_, zErr := z.Write(text.Bytes())
	for _, err := range []error{gErr, zErr, g.Close(), z.Close()} {
		if err != nil {
			t.Fatal(err)
		}
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
		if err != nil {
			t.Fatal(err)
		}
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
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct {
		name    string
		content *bytes.Buffer
	}{{"rows.csv", &text}, {"rows.csv.gz", &gz}, {"rows.csv.zst", &zst}, {"rows.jsonl", &lines}, {"rows.parquet", &columns}} {
		path := filepath.Join(dir, f.name)
		if err := os.WriteFile(path, f.content.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		files = append(files, path)
	}
	return files
}

func TestEveryFormatIsLoadedWhole(t *testing.T) {
	s := startServe(t, "--store", filepath.Join(t.TempDir(), "store"))
	t.Setenv("TABLESTORE_ACCESS_KEY_ID", s.AccessKeyID)
	t.Setenv("TABLESTORE_ACCESS_KEY_SECRET", s.AccessKeySecret)
	target := []string{"--endpoint", s.URL, "--instance", s.Instance}
	first := ""
	for i, file := range writeFormats(t, t.TempDir(), 2000) {
		name := "t" + strconv.Itoa(i)
		args := append([]string{"load", file, "--table", name, "--create", "--pk", "id:integer", "--run-dir", filepath.Join(t.TempDir(), "run"), "--quiet"}, target...)
		if stdout, stderr, code := runBinary(t, args...); code != 0 {
			t.Fatalf("%s: exit code %d\n%s%s", file, code, stdout, stderr)
		}
		got, stderr, code := runBinary(t, append([]string{"export", "--table", name, "--format", "jsonl"}, target...)...)
		if first == "" {
			first = got
		}
		if code != 0 || strings.Count(got, "\n") != 2000 || got != first {
			t.Errorf("%s: exit code %d, %d rows, the same as those of CSV: %v; %s", file, code, strings.Count(got, "\n"), got == first, stderr)
		}
	}
}

func TestArrowIsLoadedFromFilesStreamsAndStandardInput(t *testing.T) {
	s := startServe(t, "--store", filepath.Join(t.TempDir(), "store"))
	t.Setenv("TABLESTORE_ACCESS_KEY_ID", s.AccessKeyID)
	t.Setenv("TABLESTORE_ACCESS_KEY_SECRET", s.AccessKeySecret)
	target := []string{"--endpoint", s.URL, "--instance", s.Instance}
	data := filepath.Join("..", "reader", "arrow", "testdata")
	first := ""
	for i, tt := range []struct{ file, stdin string }{
		{filepath.Join(data, "many.arrow"), ""}, {filepath.Join(data, "many_zstd.arrows"), ""},
		{"-", filepath.Join(data, "many.arrows")}, {"-", filepath.Join(data, "many_lz4.arrow")},
	} {
		name := "t" + strconv.Itoa(i)
		cmd := exec.Command(binary, append([]string{"load", tt.file, "--table", name, "--create", "--pk", "id:integer", "--run-dir", filepath.Join(t.TempDir(), "run"), "--quiet"}, target...)...)
		if tt.stdin != "" {
			from, err := os.Open(tt.stdin)
			if err != nil {
				t.Fatal(err)
			}
			defer from.Close()
			cmd.Stdin = from
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%+v: %v\n%s", tt, err, out)
		}
		got, stderr, code := runBinary(t, append([]string{"export", "--table", name, "--format", "jsonl"}, target...)...)
		if first == "" {
			first = got
		}
		if code != 0 || strings.Count(got, "\n") != 400 || got != first || !strings.Contains(got, `"at":"{\"a\":1,\"b\":\"view of row number 1\"}"`) {
			t.Errorf("%+v: exit code %d, %d rows, the same as the first: %v; %s%.200s", tt, code, strings.Count(got, "\n"), got == first, stderr, got)
		}
	}
}
