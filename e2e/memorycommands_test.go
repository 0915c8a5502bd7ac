//go:build e2e && linux

package e2e

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/pierrec/lz4/v4"
)

// TestOtherCommandsStayWithinTheirMemory runs the commands that read inputs, beside load, on files that would take much more
// memory if anything of them were held unchecked.
func TestOtherCommandsStayWithinTheirMemory(t *testing.T) {
	serve := startServe(t)
	t.Setenv("TABLESTORE_ACCESS_KEY_ID", serve.AccessKeyID)
	t.Setenv("TABLESTORE_ACCESS_KEY_SECRET", serve.AccessKeySecret)
	target := []string{"--endpoint", serve.URL, "--instance", serve.Instance, "--table", "t", "--pk", "id:integer"}
	seed := filepath.Join(t.TempDir(), "seed.csv")
	writeFile(t, seed, func(w io.Writer) { io.WriteString(w, "id,v\n1,x\n") })
	idle, code, out := runMeasured(t, append([]string{"load", seed, "--create", "--run-dir", filepath.Join(t.TempDir(), "run")}, target...)...)
	if code != 0 {
		t.Fatal(out)
	}
	all, three := []string{"inspect", "count", "advise", "check", "verify"}, []string{"count", "advise", "check"}
	for _, test := range []struct {
		name, file string
		write      func(io.Writer)
		commands   []string
	}{
		{"70 values of 1 MB in Parquet", "a.parquet", func(w io.Writer) { writeValues(w, 70, 1<<20, true) }, all},
		{"one dictionary value of 8 MiB for 30 rows", "a.parquet", func(w io.Writer) { writeValues(w, 30, 8<<20, false) }, all},
		{"a page that says it is 2 GiB long", "a.parquet", func(w io.Writer) { writeLie(w, 130<<20, 1<<31-1) }, three},
		{"a page that says it is 1 MiB long and is 60", "a.parquet", func(w io.Writer) { writeLie(w, 60<<20, 1<<20) }, three},
		{"100 values of 1 MB in CSV", "a.csv", func(w io.Writer) { writeText(w, 100, 1<<20, "%d,%s\n", "id,v\n") }, three},
		{"an endless line in gzip", "a.csv.gz", func(w io.Writer) {
			z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
			writeEndless(z, "id,v\n1,x\n2,")
			z.Close()
		}, all},
		{"an endless line of JSON", "a.jsonl", func(w io.Writer) { writeEndless(w, "{\"id\":1,\"v\":\"x\"}\n{\"id\":2,\"v\":\"") }, three},
		{"an endless line in lz4", "a.csv.lz4", func(w io.Writer) {
			z := lz4.NewWriter(w)
			z.Apply(lz4.BlockSizeOption(lz4.Block4Mb))
			writeEndless(z, "id,v\n1,x\n2,")
			z.Close()
		}, []string{"count", "check"}},
		{"an endless line in bzip2", "a.csv.bz2", func(w io.Writer) { writeMembers(w, bzip2Head, 1); writeMembers(w, bzip2Member, 10) }, []string{"count", "check"}},
		{"an endless line in xz", "a.csv.xz", func(w io.Writer) { writeMembers(w, xzHead, 1); writeMembers(w, xzMember, 80) }, []string{"count", "check"}},
		{"a window of 512 MiB in xz", "a.csv.xz", func(w io.Writer) { writeMembers(w, xzWindow, 1) }, three},
		{"1000 columns", "a.csv", func(w io.Writer) { writeColumns(w, 500) }, []string{"count", "advise", "check"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			sampled(t)
			path := filepath.Join(t.TempDir(), test.file)
			writeFile(t, path, test.write)
			for _, name := range test.commands {
				args := []string{name, path, "--memory", "64MiB", "--json"}
				switch name {
				case "count":
					args = append([]string{"inspect", "--count"}, args[1:]...)
				case "check":
					args = append(args, "--pk", "id:integer", "--unique")
				case "verify":
					args = append(args, target...)
				}
				peak, code, out := runWithin(t, 64<<20+besideMemory(idle), args...)
				t.Logf("%s: peak %d MiB, exit code %d: %.200q", name, peak>>20, code, out)
				// verify finds that the table lacks these rows, code 6; a damaged file ends the others with 3 at most.
				if code > 3 && (name != "verify" || code != 6) || strings.Contains(out, "goroutine ") {
					t.Errorf("%s: exit code %d:\n%.2000s", name, code, out)
				}
			}
		})
	}
}
