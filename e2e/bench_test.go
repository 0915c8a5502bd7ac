//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
)

// BenchmarkSmallLoads measures loads of few rows, in which starting a process, files and syncs dominate.
func BenchmarkSmallLoads(b *testing.B) {
	server := startServe(b)
	target := func(name string) string {
		if name == "one row, served" {
			return "--endpoint=" + server.URL + " --instance=" + server.Instance
		}
		return "--store=store"
	}
	one := "load one.csv --table t --create --pk id:integer --quiet "
	for _, c := range []struct {
		name, args string
		again      bool // the store exists
	}{
		{"start", "--version", true},
		{"one row, new store", one, false},
		{"one row, store that exists", one, true},
		{"one row, served", one, true},
		{"job of 200 tables of 1,000 rows", "run job.yaml --quiet ", false},
		{"the same, 4 at a time", "run job.yaml --parallel 4 --quiet ", false},
	} {
		b.Run(c.name, func(b *testing.B) {
			args := c.args
			if args != "--version" {
				args += target(c.name)
			}
			p := smallPlace(b, server)
			if c.again {
				p.run(0, strings.Fields(args)...)
			}
			cpu := 0.0
			for b.Loop() {
				if !c.again {
					b.StopTimer()
					p = smallPlace(b, server)
					b.StartTimer()
				}
				cmd := p.command(strings.Fields(args)...)
				text, err := cmd.CombinedOutput()
				conformance.MustTrue(b, err == nil, "%v: %s", err, text)
				cpu += (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds() * 1e3
			}
			b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms/op")
			b.ReportMetric(cpu/float64(b.N), "cpu-ms/op")
		})
	}
}

func smallPlace(b *testing.B, s *served) *place {
	p := newPlace(b, s.credentials()...)
	p.write("one.csv", "id,item\n1,tea\n")
	for i := range 200 {
		var rows strings.Builder
		rows.WriteString("id,name,amount\n")
		for row := range 1000 {
			fmt.Fprintf(&rows, "%d,name %d of %d,%d.5\n", row, row, i, row)
		}
		p.write(fmt.Sprintf("in/t%03d.csv", i), rows.String())
	}
	p.write("job.yaml", "version: 1\ndefaults: {create: true, pk: [id:integer]}\nloads:\n  \"{table}\": {from: "+
		"[\"in/{table}.csv\"]}\n")
	return p
}
