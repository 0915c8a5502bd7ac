package jsonl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// lines makes n lines of eight columns.
func lines(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, `{"id":%d,"name":"student %d","city":"杭州","score":%d.25,"ok":%v,"note":null,"tags":["a","b"],"mail":"user%d@example.com"}`+"\n",
			i, i, i%100, i%2 == 0, i)
	}
	return b.Bytes()
}

func BenchmarkJSONLines(b *testing.B) {
	sets := map[string][]byte{"students": lines(20000)}
	if dir := os.Getenv("TSIMPORT_SHARED_DATA"); dir != "" {
		data, err := os.ReadFile(filepath.Join(dir, "real/pinot/pinot-segment-local/src/test/resources/data/test_sample_data.json"))
		if err == nil {
			sets["pinot"] = data
		}
	}
	for _, name := range []string{"students", "pinot"} {
		data := sets[name]
		rows := bytes.Count(data, []byte("\n"))
		if rows == 0 {
			continue
		}
		var found Columns
		Discover(data, Options{}, &found)
		bench := func(how string, run func() int) {
			b.Run(name+"/"+how, func(b *testing.B) {
				b.SetBytes(int64(len(data)))
				b.ReportAllocs()
				for b.Loop() {
					if run() == 0 {
						b.Fatal("no rows")
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows), "ns/row")
			})
		}
		parse := func(o Options) func() int {
			p := NewParser(o)
			return func() int {
				p.Reset(data)
				for r, ok := p.Next(); ok; r, ok = p.Next() {
					if r.Bad != nil {
						b.Fatal(r.Bad)
					}
				}
				return p.Records()
			}
		}
		bench("parser", parse(Options{Columns: found.Names()}))
		bench("parser of two columns", parse(Options{Columns: found.Names()[:2]}))
		bench("parser flattened", parse(Options{Columns: found.Names(), Flatten: true}))
		bench("encoding-json raw values", func() (n int) {
			for line := range bytes.Lines(data) {
				var m map[string]json.RawMessage
				if err := json.Unmarshal(line, &m); err != nil {
					b.Fatal(err)
				}
				n++
			}
			return n
		})
		bench("encoding-json values", func() (n int) {
			d := json.NewDecoder(bytes.NewReader(data))
			d.UseNumber()
			for d.More() {
				var m map[string]any
				if err := d.Decode(&m); err != nil {
					b.Fatal(err)
				}
				n++
			}
			return n
		})
	}
}
