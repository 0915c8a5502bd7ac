package compatibility

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/conformance"
)

// left is what a process of an earlier version has left in a folder of testdata, for the current version to judge.
type left struct {
	name        string
	make, judge func(p *place)
}

const runFolder = "tsimport-runs/*Z-*"

// twice are the two checkpoints that a run keeps: once the older one exists, a second has passed, and a hundred rows.
const twice = runFolder + "/checkpoint.prev"

var corpus = []left{
	{"a load that was killed", func(p *place) {
		p.write("orders.csv", header+orders(1, 300)+"oops,none,1\n"+orders(20, 29))
		p.killed(twice, "load", "orders.csv", "--table", "orders", "--pk", "id", "--type", "id=integer")
	}, func(p *place) {
		runs := list(p)
		conformance.True(p, len(runs) == 1 && runs[0].Unfinished && runs[0].Table == "orders",
			"runs lists %+v, want one of orders that is not finished", runs)
		_, said := p.run(3, "resume")
		holds(p, said, "resuming run "+runs[0].Folder, "(attempt 2,", "311 read", "1 rejected")
		p.same("orders", orders(1, 300))
		p.run(0, "verify", "--run", runs[0].Folder)
	}},

	{"a copy that was killed", func(p *place) {
		p.serve()
		p.write("orders.csv", header+orders(1, 300))
		p.made(0, "load", "orders.csv", "--table", "orders", "--pk", "id", "--create")
		p.remove("tsimport-runs")
		p.killed(twice, "copy", "ots://tsimport/orders", "ots://tsimport/again", "--create", "--settle", "1ms")
	}, func(p *place) {
		p.serve()
		resumed("rows read are final", orders(1, 300))(p)
		p.same("again", orders(1, 300))
	}},

	{"a load with rejects", func(p *place) {
		p.write("orders.csv", header+orders(1, 20)+"oops,item 21,63\n")
		p.made(3, "load", "orders.csv", "--table", "orders", "--pk", "id", "--type", "id=integer")
	}, func(p *place) {
		run := p.one(runFolder)
		p.run(0, "verify", "--run", run)
		rejects := filepath.Join(run, "rejects.csv")
		text, err := os.ReadFile(rejects)
		must(p, err)
		must(p, os.WriteFile(rejects, []byte(strings.Replace(string(text), "oops", "21", 1)), 0o600))
		p.run(0, "load", "--retry-rejects", run)
		p.same("orders", orders(1, 21))
	}},

	{"runs that are over", func(p *place) {
		for n := 1; n <= 2; n++ {
			p.write("orders.csv", header+orders(1, n))
			p.made(0, "load", "orders.csv", "--table", "orders", "--pk", "id")
		}
	}, func(p *place) {
		runs := list(p)
		p.run(0, "runs", "prune", "--keep", "1")
		if after := list(p); len(runs) != 2 || !slices.Equal(after, runs[:1]) {
			p.Errorf("pruning has left %+v of %+v, want the newest", after, runs)
		}
	}},

	{"a load of before 0.1.0", nil, func(p *place) {
		load := []string{"load", "orders.csv", "--table", "orders", "--pk", "id", "--type", "id=integer"}
		for _, command := range [][]string{{"resume"}, {"resume", p.one(runFolder)}, load,
			{"load", "--retry-rejects", p.one(runFolder)}} {
			_, said := p.run(2, command...)
			holds(p, said, "was written by an earlier version of tsimport; use that version, or ")
		}
		out, _ := p.run(0, "runs")
		holds(p, out, "unread")
		p.run(3, append(load, "--fresh")...)
		p.same("orders", orders(1, 300))
	}},

	{"known files", func(p *place) {
		p.serve()
		p.write("drop/monday.csv", header+orders(1, 20))
		p.made(0, "load", "drop/*.csv", "--table", "orders", "--pk", "id", "--create", "--only-new")
	}, tuesday("drop/*.csv", "--table", "orders", "--pk", "id", "--create", "--only-new")},

	{"known files with one that is set aside", func(p *place) {
		p.serve()
		p.write("drop/monday.csv", header+orders(1, 20))
		p.write("drop/more.csv", header+orders(21, 30))
		p.write("drop/other.csv", "id,goods,price\n99,x,1\n")
		p.made(3, "load", "drop/*.csv", "--table", "orders", "--pk", "id", "--create", "--only-new")
	}, func(p *place) {
		p.serve()
		out, _ := p.run(0, "files", "--table", "orders", "--state", "bad")
		holds(p, out, "1 night", "other.csv: its columns are not those of drop/monday.csv")
		p.run(3, "load", "drop/*.csv", "--table", "orders", "--pk", "id", "--create", "--only-new") // alone it loads
		p.write("drop/other.csv", header+orders(31, 40))
		p.run(0, "load", "drop/*.csv", "--table", "orders", "--pk", "id", "--create", "--only-new")
		p.same("orders", orders(1, 40))
	}},

	{"a state", func(p *place) {
		p.serve()
		p.write("drop/monday.csv", header+orders(1, 20))
		p.made(0, "load", "drop/*.csv", "--table", "orders", "--pk", "id", "--create", "--only-new", "--state", "state")
		p.remove("tsimport-runs")
	}, tuesday("drop/*.csv", "--table", "orders", "--pk", "id", "--create", "--only-new", "--state", "state")},

	{"a state of a load that was stopped", func(p *place) {
		p.write("orders.csv", header+orders(1, 300))
		p.made(1, strings.Fields("load orders.csv -t orders --pk id --state state --timeout 1s --max-rows-per-second 100")...)
		p.remove("tsimport-runs")
	}, func(p *place) {
		_, said := p.run(0, "load", "orders.csv", "--table", "orders", "--pk", "id", "--state", "state")
		holds(p, said, "resuming run", "300 read, 300 written")
		p.same("orders", orders(1, 300))
	}},

	{"a job that was killed", func(p *place) {
		p.write("orders.csv", header+orders(1, 150))
		p.write("stock.csv", header+orders(1, 20))
		p.write("job.yaml", `version: 1
defaults: {pk: [id], type: {id: integer}}
loads:
  stock: {from: [stock.csv]}
  orders: {after: [stock], from: [orders.csv]}
  report: {command: export, after: [orders], table: orders, output: report.csv}
`)
		p.killed("tsimport-runs/*/orders/checkpoint.prev", "run", "job.yaml")
	}, func(p *place) {
		_, said := p.run(0, "resume", p.one("tsimport-runs/*-job"))
		holds(p, said, "orders: done: 150 read, 150 written", "job done: 3 of 3 loads done, 170 read")
		p.same("orders", orders(1, 150))
		p.same("stock", orders(1, 20))
	}},

	{"a job file", func(p *place) {
		p.write("orders.csv", header+orders(1, 20))
		p.write("job.yaml",
			"version: 1\nloads:\n  orders:\n    from: [orders.csv]\n    pk: [id]\n    type: [price=integer]\n")
	}, func(p *place) {
		out, _ := p.run(0, "run", "job.yaml", "--plan", "--json")
		holds(p, out, `"table": "orders"`)
		p.run(0, "run", "job.yaml")
		p.same("orders", orders(1, 20))
	}},

	{"a job directory", func(p *place) {
		p.serve()
		p.write("orders.csv", header+orders(1, 200))
		p.write("more.csv", header+orders(150, 400)+"oops,none,1\n")
		const load = "load orders.csv more.csv --table orders --pk id --type id=integer --create --job-dir jobs --workers 1"
		p.made(0, strings.Fields(load)...)
	}, func(p *place) {
		p.serve()
		p.run(0, "status", "jobs")
		p.run(3, "work", "--job-dir", "jobs")
		p.same("orders", orders(1, 400))
	}},

	{"an archive", func(p *place) {
		p.everyType()
		p.made(0, "export", "--table", "types", "--output", "archive/")
	}, func(p *place) {
		p.run(0, "verify", "archive", "--table", "types")
		p.run(0, "load", "archive", "--table", "again", "--create", "--verify")
		p.sameTypes("again")
	}},

	{"an archive that was killed", func(p *place) {
		p.serve()
		p.write("orders.csv", header+orders(1, 60))
		p.made(0, "load", "orders.csv", "--table", "orders", "--pk", "id", "--create")
		must(p, p.served.Sim().Simulate("", server.Simulation{Config: sim.Config{Partitions: 4},
			SampleLines: []string{"15", "30", "45", "60"}}))
		p.killedAt("GetRange", 3, "export", "--table", "orders", "--output", "archive/", "--concurrency", "1")
		p.one("archive/archive-00001-*")
	}, func(p *place) {
		p.serve()
		_, said := p.run(0, "export", "--table", "orders", "--output", "archive/")
		holds(p, said, "continu")
		p.run(0, "load", "archive", "--table", "again", "--create")
		p.same("again", orders(1, 60))
	}},

	{"an export to a folder of Parquet that was killed", func(p *place) {
		p.serve()
		p.write("orders.csv", header+orders(1, 60))
		p.made(0, "load", "orders.csv", "--table", "orders", "--pk", "id", "--create")
		must(p, p.served.Sim().Simulate("", server.Simulation{Config: sim.Config{Partitions: 4},
			SampleLines: []string{"15", "30", "45", "60"}}))
		p.killedAt("GetRange", 6, "export", "--table", "orders", "--format", "parquet", "--output", "lake/all={id > 0}/",
			"--concurrency", "1")
		p.one("lake/all=true/part-00001-*")
	}, func(p *place) {
		p.serve()
		_, said := p.run(0, "export", "--table", "orders", "--format", "parquet", "--output", "lake/all={id > 0}/")
		holds(p, said, "continu")
		p.run(0, "load", "lake", "--table", "again", "--pk", "id", "--create")
		p.same("again", orders(1, 60))
	}},

	{"a load with returned keys that was killed", func(p *place) {
		p.write("orders.csv", header+orders(1, 300))
		p.killed(twice, strings.Fields("load orders.csv --table orders --pk item --pk n:auto --returned-keys keys.csv")...)
	}, func(p *place) {
		_, said := p.run(0, "resume")
		holds(p, said, "(attempt 2,", "300 read, 300 written")
		p.run(0, strings.Fields("verify orders.csv -t orders --pk item --pk n:auto --returned-keys keys.csv --extra fail")...)
	}},

	{"a sync that was killed", func(p *place) {
		p.serve()
		p.write("orders.csv", header+orders(1, 20)+"999,gone,1\n")
		p.made(0, "load", "orders.csv", "--table", "orders", "--pk", "id", "--create")
		p.remove("tsimport-runs")
		p.write("orders.csv", header+orders(1, 40))
		const sync = "sync orders.csv --table orders --pk id --delete --max-delete 10% --settle 1ms"
		p.killedAt("BatchWriteRow", 0, strings.Fields(sync)...)
		p.one("tsimport-runs/*-sync/sync.json")
	}, func(p *place) {
		p.serve()
		resumed("20 rows written, 1 deleted", orders(1, 40))(p)
	}},

	{"an archive of age", func(p *place) {
		p.write("policy.yaml", "period: month\nclasses:\n  - {up_to: 0}\n  - {archive: old}\n")
		p.write("orders.csv", header+orders(1, 20))
		p.made(0, "load", "orders.csv", "--table", "orders_202001", "--pk", "id")
		p.made(0, "age", "--policy", "policy.yaml", "--table", "orders_{month}", "--apply")
	}, func(p *place) {
		p.run(0, "age", "--policy", "policy.yaml", "--table", "orders_{month}", "--apply", "--drop-expired")
		out, _ := p.run(0, "table", "list")
		conformance.True(p, !strings.Contains(out, "orders_202001"), "the archived table is still there: %s", out)
		p.one("old/*.manifest.json") // it was found equal to its archive, and not archived again
	}},

	{"a store", (*place).everyType, func(p *place) { p.sameTypes("types") }},
}

// later is what later versions have left: archives of version 2.
func later() (more []left) {
	for _, name := range []string{"an archive", "an archive that was killed", "an archive of age"} {
		l := corpus[slices.IndexFunc(corpus, func(l left) bool { return l.name == name })]
		l.name += " of rows that describe themselves"
		more = append(more, l)
	}
	return more
}

// resumed resumes the only run, which must report that and leave the table orders.
func resumed(says, want string) func(p *place) {
	return func(p *place) {
		_, said := p.run(0, "resume")
		holds(p, said, "resuming run", says)
		p.same("orders", want)
	}
}

// everyType loads a row of each type, and a second version of some of its cells.
func (p *place) everyType() {
	p.write("types.jsonl", types)
	p.made(0, strings.Fields("load types.jsonl --table types --pk s --pk i --type b=binary --max-versions 3")...)
}

const types = `{"s":"a","i":1,"b":"AAEC/w==","n":-7,"text":"tea, 茶","x":1.5,"yes":true}
{"s":"b","i":-2,"b":"AA==","n":9223372036854775807,"text":"","x":-0.25,"yes":false}
`

func (p *place) sameTypes(table string) {
	p.Helper()
	out, _ := p.run(0, "export", "--table", table, "--format", "jsonl")
	out = strings.NewReplacer(`{"base64":`, "", `"},"n"`, `","n"`).Replace(out)
	conformance.True(p, out == types, "table %s holds\n%s, want\n%s", table, out, types)
}

// tuesday adds a file to a folder whose Monday file is known, and runs the same command again.
func tuesday(load ...string) func(p *place) {
	return func(p *place) {
		p.serve()
		p.write("drop/again.csv", header+orders(1, 20)) // Monday's content, which its hash says
		p.write("drop/tuesday.csv", header+orders(21, 40))
		_, said := p.run(0, append([]string{"load"}, load...)...)
		holds(p, said, "20 read, 20 written")
		p.same("orders", orders(1, 40))
	}
}

const header = "id,item,price\n"

func orders(from, to int) string {
	var text strings.Builder
	for n := from; n <= to; n++ {
		fmt.Fprintf(&text, "%d,item %d,%d\n", n, n, 3*n)
	}
	return text.String()
}

func (p *place) same(table, want string) {
	p.Helper()
	got, _ := p.run(0, "export", "--table", table)
	conformance.True(p, got == header+want, "table %s holds\n%s\nwant\n%s", table, got, header+want)
}

func holds(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		conformance.Contains(t, text, part, "what was written")
	}
}

type listed struct {
	Folder, Table, State string
	Unfinished           bool
}

func list(p *place) (runs []listed) {
	out, _ := p.run(0, "runs", "--json")
	must(p, json.Unmarshal([]byte(out), &runs))
	return runs
}

func TestFilesOfEarlierVersionsAreUsable(t *testing.T) {
	for _, l := range slices.Concat(corpus, later()) {
		t.Run(l.name, func(t *testing.T) {
			kept := conformance.Try(filepath.Abs(filepath.Join("testdata", strings.ReplaceAll(l.name, " ", "-")))).Must(t)
			if _, err := os.Stat(kept); *update && os.IsNotExist(err) { // what is there stands for the version that has made it
				must(t, os.RemoveAll(placeThere))
				p := newPlace(t, placeThere)
				l.make(p)
				p.close()
				p.keep(kept)
				must(t, os.RemoveAll(placeThere))
			}
			p := newPlace(t, filepath.Join(t.TempDir(), "place"))
			copied(t, kept, p.dir, strings.NewReplacer(placeThere, p.dir))
			l.judge(p)
		})
	}
}
