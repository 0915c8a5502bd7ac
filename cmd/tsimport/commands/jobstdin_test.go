package commands

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
)

// fromStdin has standard input give what write writes, until the test ends.
func fromStdin(t *testing.T, write func(r, w *os.File)) {
	t.Helper()
	r, w, err := os.Pipe()
	must(t, err)
	was := os.Stdin
	os.Stdin = r
	var group sync.WaitGroup
	group.Go(func() { write(r, w); w.Close() })
	t.Cleanup(func() {
		os.Stdin = was
		r.Close()
		group.Wait()
	})
}

const threeLoads = `
version: 1
parallel: 3
defaults: {mode: changes, pk: ["id:string"], create: true, type: {id: string, v: string}}
loads: {a: {from: "-", source-table: a}, b: {from: "-", source-table: public.b}, c: {from: "-", source-table: c, max-rows-per-second: 1000}}
`

// TestJobLoadsTheTablesOfOneStream ends loads, one slow, and begins again: none ends early or awaits a failed one.
func TestJobLoadsTheTablesOfOneStream(t *testing.T) {
	const all, bad = 3000, 1500 // of several MiB: the first is settled as one
	var events []string
	want := [all + 1]map[string]map[string]string{{"a": {}, "b": {}, "c": {}}}
	rnd := rand.New(rand.NewPCG(44, 1))
	for i := range all {
		table, key, v := "abc"[rnd.IntN(3):][:1], fmt.Sprint("k", rnd.IntN(20)), fmt.Sprint(i)
		events = append(events,
			fmt.Sprintf(`{"op":"u","after":{"id":%q,"v":%q},"source":{"connector":"postgresql","schema":"public","table":%q,"lsn":%d,"pad":"%01000d"}}`+"\n",
				key, v, table, i+1, 0))
		want[i+1] = map[string]map[string]string{}
		for name, rows := range want[i] {
			want[i+1][name] = rows
		}
		want[i+1][table] = map[string]string{key: v}
		for key, v := range want[i][table] {
			if want[i+1][table][key] == "" {
				want[i+1][table][key] = v
			}
		}
	}
	text := func(from, to int) string { return strings.Join(events[from:to], "") }
	for end, c := range map[string]struct {
		code int
		done string
		does func(r, w *os.File)
	}{
		"a bad change": {4, "2 of 3", func(_, w *os.File) {
			_, _ = io.WriteString(w, strings.Replace(strings.Replace(text(bad, bad+1), `"op":"u"`, `"op":"?"`, 1), `"table":"`,
				`"table":"b","was":"`, 1)+text(bad, all))
		}},
		"a read error": {2, "0 of 3", func(r, _ *os.File) { must(t, r.SetReadDeadline(time.Unix(1, 0))) }},
		"an interrupt": {130, "0 of 3", func(_, w *os.File) {
			must(t, conformance.Try(os.FindProcess(os.Getpid())).Must(t).Signal(syscall.SIGINT))
			_, _ = io.WriteString(w, text(bad, all))
		}},
	} {
		t.Run(end, func(t *testing.T) {
			tsimport := commandsIn(t)
			has := func(table string, n int) {
				t.Helper()
				rows := tsimport(0, "export", "-t", table, "-q")
				conformance.Equal(t, strings.Count(rows, "\n"), len(want[n][table])+1, "lines of table %s", table)
				for key, v := range want[n][table] {
					conformance.Contains(t, rows, "\n"+key+","+v+"\n", "table %s", table)
				}
			}
			put(t, "job.yaml", threeLoads)
			fromStdin(t, func(r, w *os.File) {
				_, _ = io.WriteString(w, text(0, bad))
				c.does(r, w)
			})
			said := tsimport(c.code, "run", "job.yaml")
			holds(t, said, c.done+" loads done", "job.yaml --fresh a b c")
			from, at := "their beginning", 0
			if _, place, ok := strings.Cut(said, "give the changes from LSN 0/"); ok {
				must(t, conformance.ErrorOf(fmt.Sscanf(place, "%X", &at)))
				from = fmt.Sprintf("LSN 0/%X or before", at)
			}
			conformance.MustTrue(t, at <= bad && (at > 0 || c.code != 4), "begin at %d", at)
			for _, again := range [][]string{{"run", "job.yaml"}, {"run", "job.yaml", "--fresh", "b"}} {
				holds(t, tsimport(2, again...), "standard input cannot be read again", "give the changes from "+from)
			}
			if c.code == 4 {
				has("a", all)
				has("b", bad)
				has("c", all)
			}
			fromStdin(t, func(_, w *os.File) { _, _ = io.WriteString(w, text(at, all)) })
			ends(t, 0, "run job.yaml --fresh a b c", fmt.Sprintf("resume_from LSN 0/%X, the earliest of the loads", all))
			for table := range want[0] {
				has(table, all)
			}
		})
	}
}

func TestJobsRefuseStandardInputThatTheyCannotShare(t *testing.T) {
	tsimport := commandsIn(t)
	t.Setenv("FROM", "-")
	put(t, "job.yaml", threeLoads)
	put(t, "pipe.yaml", strings.ReplaceAll(threeLoads, `"-"`, os.DevNull))
	put(t, "variable.yaml", "version: 1\nloads: {a: {from: \"${FROM}\", pk: [id]}}\n")
	for args, want := range map[string]string{
		"job.yaml --plan":        "load a reads standard input, which one process can read, once",
		"job.yaml --job-dir dir": "leave out --plan and --job-dir", "job.yaml --parallel 2": "give parallel: 3, or more",
		"pipe.yaml": "and each would get only a part", "variable.yaml": "a variable cannot name standard input",
	} {
		holds(t, tsimport(2, append([]string{"run"}, strings.Fields(args)...)...), want)
	}
}
