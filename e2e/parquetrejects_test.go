//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
)

// rejectable is a row with columns whose values JSON has no types for; n is what it is rejected for.
type rejectable struct {
	ID     string           `parquet:"id"`
	Bytes  []byte           `parquet:"bytes"`
	Hex    []byte           `parquet:"hex"`
	Plain  []byte           `parquet:"plain"`
	Map    map[string]int64 `parquet:"map"`
	When   int64            `parquet:"when,timestamp(millisecond)"`
	Day    int32            `parquet:"day,date"`
	Own    float64          `parquet:"own"`
	Stamp  int64            `parquet:"stamp,timestamp(millisecond)"`
	Number string           `parquet:"n"`
}

// TestRejectsOfParquetLoadAsTheRecordsThatTheyWere compares corrected rejects with a file that had no mistake.
func TestRejectsOfParquetLoadAsTheRecordsThatTheyWere(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	now := time.Now().UnixMilli()
	for name, number := range map[string]string{"bad.parquet": "x", "good.parquet": "1"} {
		rows := []rejectable{
			{"a", []byte("\n"), []byte{0xd7, 0x6d}, []byte{0, 1}, map[string]int64{"b": 1}, 1704067200123, 19723, 5, now, number},
			{"b", []byte("AP8="), []byte("00ff"), []byte("x"), map[string]int64{"b": 2}, -1, -1, 0.1, now + 1, number},
		}
		must(t, parquet.WriteFile(p.path(name), rows))
	}
	for _, flatten := range []string{"--flatten=false", "--flatten"} {
		exported := map[string]string{}
		for _, name := range []string{"good", "bad"} {
			run := name + flatten
			p.run(map[string]int{"good": 0, "bad": 3}[name], "load", name+".parquet", "--store", "store"+run, "--table", "t", "--pk", `k=id + ":" + bytes`, "--type", "bytes=string",
				"--type", "hex=binary(hex)", "--type", "when=timestamp(,America/New_York)", "--type", "day=timestamp(,Asia/Shanghai,s)", "--type", "own=any", "--type", "plain=binary",
				"--type", "n=integer", "--version-column", "stamp", "--exclude", "stamp", "--max-errors", "-1", "--run-dir", run, flatten)
			if name == "bad" {
				p.write(run+"/rejects.ndjson", strings.ReplaceAll(p.read(run+"/rejects.ndjson"), `"n":"x"`, `"n":"1"`))
				p.run(0, "load", "--retry-rejects", run, "--run-dir", run+"-again")
			}
			exported[name] = p.output("export", "--store", "store"+run, "--table", "t", "--format", "jsonl")
			if strings.Count(exported[name], "\n") != 2 {
				t.Fatalf("%s: %s", run, exported[name])
			}
		}
		if exported["good"] != exported["bad"] {
			t.Errorf("%s: the rejects are\n%s\nthe records were\n%s", flatten, exported["bad"], exported["good"])
		}
	}
}
