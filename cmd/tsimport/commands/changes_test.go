package commands

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
)

var historySeeds = flag.Int("history-seeds", 3, "how many histories of changes are drawn")

// history is the history of a source table: changes[i] turns states[i] into states[i+1].
type history struct {
	states  []map[string]map[string]any // rows by key
	changes []historyChange
}

type historyChange struct {
	op   string // Debezium's op; "p" is an update with only the changed columns
	key  string
	row  map[string]any // row after the change, or its changed columns
	over string         // another table that is changed instead, or ""
}

func drawHistory(rnd *rand.Rand, changes int) *history {
	h := &history{states: []map[string]map[string]any{{}}}
	for i := 0; len(h.changes) < changes; i++ {
		rows := maps.Clone(h.states[len(h.states)-1])
		key := fmt.Sprint("k", rnd.IntN(12))
		c := historyChange{op: "c", key: key, row: map[string]any{"a": fmt.Sprint("a", i)}}
		if rnd.IntN(2) == 0 {
			c.row["n"] = int64(i)
		}
		old, exists := rows[key]
		switch what := rnd.IntN(10); {
		case what == 0:
			c.over = "other" // a row of another table with the same key
		case exists && what < 4:
			c.op, c.row = "d", nil
			delete(rows, key)
		case exists && what < 6:
			c.op = "p"
			if c.row["n"] == nil && rnd.IntN(2) == 0 {
				c.row["n"] = nil // deletes the column
			}
			rows[key] = maps.Clone(old)
			for name, v := range c.row {
				if rows[key][name] = v; v == nil {
					delete(rows[key], name)
				}
			}
		default:
			if exists {
				c.op = "u"
			}
			rows[key] = c.row
		}
		h.changes, h.states = append(h.changes, c), append(h.states, rows)
	}
	return h
}

// historyText returns changes in the named form, and the flags for reading them.
func historyText(form string, changes []historyChange) (text string, flags []string) {
	var lines []string
	add := func(v any) {
		line := conformance.Try(json.Marshal(v)).Must(conformance.Sure{})
		lines = append(lines, string(line))
	}
	type object = map[string]any
	switch form {
	case "debezium":
		of := object{"__debezium.source.column.type": "OTHER"}
		fields := []object{{"field": "id", "type": "string", "parameters": of},
			{"field": "a", "type": "string", "parameters": of}, {"field": "n", "type": "int64", "parameters": of}}
		images := []object{{"field": "before", "fields": fields}, {"field": "after", "fields": fields}}
		schema := object{"type": "struct", "fields": images}
		for _, c := range changes {
			image := object{"id": c.key, "a": nil, "n": nil}
			maps.Copy(image, c.row)
			payload := object{"op": c.op, "before": nil, "after": image, "source": object{"connector": "postgresql",
				"db": "shop", "schema": "public", "table": "orders" + c.over}}
			switch c.op {
			case "d":
				payload["before"], payload["after"] = image, nil
			case "p": // only changed columns are logged
				payload["op"] = "u"
				for _, name := range []string{"a", "n"} {
					if _, changed := c.row[name]; !changed {
						image[name] = "__debezium_unavailable_value"
					}
				}
			}
			add(object{"schema": schema, "payload": payload})
			if c.op == "d" {
				lines = append(lines, "null")
			}
		}
		return strings.Join(lines, "\n") + "\n", []string{"--source-table", "orders"}
	case "canal": // several rows per message
		kinds := map[string]string{"c": "INSERT", "u": "UPDATE", "p": "UPDATE", "d": "DELETE"}
		text := func(row object, key string) object {
			image := object{"id": key}
			for name, v := range row {
				if image[name] = v; v != nil {
					image[name] = fmt.Sprint(v)
				}
			}
			return image
		}
		var m object
		for i := 0; i < len(changes); i++ {
			c := changes[i]
			kind, old := kinds[c.op], object{}
			image := text(object{"a": nil, "n": nil}, c.key)
			if c.op == "p" {
				image = object{}
			}
			maps.Copy(image, text(c.row, c.key))
			if i+1 < len(changes) && c.op == "d" && changes[i+1].op == "c" && changes[i+1].over == "" &&
				changes[i+1].key != c.key {
				i++ // a row whose key changes
				kind, old = "UPDATE", object{"id": c.key}
				image = text(object{"a": nil, "n": nil}, changes[i].key)
				maps.Copy(image, text(changes[i].row, changes[i].key))
			}
			if m != nil && (m["type"] != kind || m["table"] != "orders"+c.over) {
				add(m)
				m = nil
			}
			if m == nil {
				m = object{"database": "shop", "table": "orders" + c.over, "isDdl": false, "type": kind, "pkNames": []string{"id"},
					"old": nil, "data": []object{}, "mysqlType": object{"id": "varchar(20)", "a": "text", "n": "bigint(20)"}}
			}
			if m["data"] = append(m["data"].([]object), image); kind == "UPDATE" {
				of, _ := m["old"].([]object)
				m["old"] = append(of, old)
			}
		}
		add(m)
		return strings.Join(lines, "\n") + "\n", []string{"--source-table", "orders"}
	case "op-column":
		for _, c := range changes {
			if c.over != "" {
				continue
			}
			line := object{"id": c.key, "kind": map[string]string{"c": "I", "u": "I", "p": "M", "d": "D"}[c.op]}
			maps.Copy(line, c.row)
			add(line)
		}
		return strings.Join(lines, "\n") + "\n", []string{"--op-column", "kind:I=put,M=update,D=delete", "--columns", "a,n"}
	}
	panic(form)
}

// TestChangesAfterACopyEqualTheSource loads a snapshot and then, in several loads, changes from then or earlier on.
func TestChangesAfterACopyEqualTheSource(t *testing.T) {
	for seed := range uint64(*historySeeds) {
		rnd := rand.New(rand.NewPCG(seed, 44))
		h := drawHistory(rnd, 20+rnd.IntN(100))
		for _, form := range []string{"debezium", "canal", "op-column"} {
			t.Run(fmt.Sprint(form, "/", seed), func(t *testing.T) {
				tsimport := commandsIn(t)
				copied := rnd.IntN(len(h.states))
				loadHistory(t, h.states[copied], tsimport)
				apply := func(from, to int) {
					text, flags := historyText(form, h.changes[from:to])
					if strings.Trim(text, "\n") == "" || from == to || !slices.ContainsFunc(h.changes[from:to],
						func(c historyChange) bool { return c.over == "" }) {
						return
					}
					put(t, "changes.json", text)
					const line = "load changes.json --mode changes -t orders --pk id:string --fresh -q"
					tsimport(0, append(strings.Fields(line), flags...)...)
				}
				from, n := rnd.IntN(copied+1), len(h.changes)
				for range rnd.IntN(3) { // loads that restart at an earlier change
					apply(from, from+rnd.IntN(n-from+1))
				}
				apply(from, n)
				conformance.Equal(t, exportedHistory(t, tsimport), historyOf(t, h.states[n]),
					"copied at %d, changes from %d of %d", copied, from, n)
			})
		}
	}
}

// TestNewFilesOfChangesAreAppliedEveryNight delivers changes in some files every night, and one file late.
func TestNewFilesOfChangesAreAppliedEveryNight(t *testing.T) {
	for seed := range uint64(*historySeeds) {
		rnd := rand.New(rand.NewPCG(seed, 45))
		h, form := drawHistory(rnd, 40), []string{"debezium", "canal", "op-column"}[seed%3]
		tsimport := commandsIn(t)
		loadHistory(t, nil, tsimport)
		must(t, os.Mkdir("in", 0o700))
		own := func(c historyChange) bool { return c.over == "" }
		load := func(code int) string {
			_, flags := historyText(form, h.changes[:1])
			const line = "load in --mode changes --only-new -t orders --pk id:string -q"
			return tsimport(code, append(strings.Fields(line), flags...)...)
		}
		files := 0
		for at := 0; at < len(h.changes); {
			for range 1 + rnd.IntN(3) {
				from := at
				for at < len(h.changes) && (rnd.IntN(6) > 0 || !slices.ContainsFunc(h.changes[from:at], own)) {
					at++
				}
				if slices.ContainsFunc(h.changes[from:at], own) {
					text, _ := historyText(form, h.changes[from:at])
					put(t, fmt.Sprintf("in/%03d.json", files), text)
					files++
				}
			}
			for range 1 + rnd.IntN(2) { // the second time nothing is new
				load(0)
			}
			conformance.Equal(t, exportedHistory(t, tsimport), historyOf(t, h.states[at]), "%s, seed %d, %d", form, seed, at)
			if rnd.IntN(2) == 0 {
				must(t, os.RemoveAll(fmt.Sprintf("in/%03d.json", rnd.IntN(files))))
			}
		}
		text, _ := historyText(form, []historyChange{{op: "c", key: "late", row: map[string]any{"a": "late"}}})
		put(t, "in/0.json", text)
		holds(t, load(2), "in/0.json comes before")
		conformance.Equal(t, exportedHistory(t, tsimport), historyOf(t, h.states[len(h.changes)]), "after a late file")
	}
}

func loadHistory(t *testing.T, rows map[string]map[string]any, tsimport func(int, ...string) string) {
	t.Helper()
	tsimport(0, "table", "create", "orders", "--pk", "id:string", "-q")
	if text := historyOf(t, rows); text != "" {
		put(t, "rows.jsonl", text)
		tsimport(0, "load", "rows.jsonl", "-t", "orders", "-q", "--type", "n=integer", "--columns", "a,n")
	}
}

func historyOf(t *testing.T, rows map[string]map[string]any) (text string) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		row := map[string]any{"id": key}
		maps.Copy(row, rows[key])
		line := conformance.Try(json.Marshal(row)).Must(t)
		text += string(line) + "\n"
	}
	return text
}

func exportedHistory(t *testing.T, tsimport func(int, ...string) string) (text string) {
	t.Helper()
	rows := map[string]map[string]any{}
	for line := range strings.Lines(tsimport(0, "export", "-t", "orders", "--format", "jsonl", "-q")) {
		var row map[string]any
		must(t, json.Unmarshal([]byte(line), &row))
		key := row["id"].(string)
		delete(row, "id")
		for name, v := range row {
			if v == nil {
				delete(row, name)
			}
		}
		rows[key] = row
	}
	return historyOf(t, rows)
}

func TestChangeLoadRefusesUnsupportedOptions(t *testing.T) {
	tsimport := commandsIn(t)
	put(t, "c.csv", "op,id,v\nI,a,1\nD,b,\n")
	put(t, "rows.jsonl", `{"id":"a"}`+"\n")
	put(t, "d.json", `{"op":"c","after":{"id":"a"},"source":{"table":"orders"}}`+"\n")
	tsimport(0, "table", "create", "versions", "--pk", "id:string", "--max-versions", "3", "-q")
	tsimport(0, "table", "create", "numbered", "--pk", "id:string", "--pk", "n:auto", "-q")
	changes := []string{"load", "c.csv", "--mode", "changes", "--pk", "id:string"}
	load := slices.Concat(changes, []string{"--op-column", "op"})
	for _, c := range []struct {
		more []string
		want string
	}{
		{[]string{"--order", "none"}, "--order none"}, {[]string{"--condition", "exist"}, "--condition"},
		{[]string{"--when", "stored.v < new.v"}, "--when"},
		{[]string{"--limit", "1"}, "--limit"}, {[]string{"--set", "x='1'"}, "--set"},
		{[]string{"--version-column", "v"}, "--version-column"},
		{[]string{"--max-errors", "5"}, "--max-errors"}, {[]string{"--only-new", "--reload-changed"}, "--reload-changed"},
		{[]string{"--accept-changed-input"}, "--accept-changed-input"}, {[]string{"--verify"}, "--verify"},
		{[]string{"--job-dir", "jobs"}, "--job-dir"},
	} {
		holds(t, tsimport(2, slices.Concat(load, []string{"-t", "t"}, c.more)...), c.want)
	}
	for column, want := range map[string]string{"other": "no such column", "op:I=insert": "put|update|delete",
		":I=put": "put|update|delete"} {
		holds(t, tsimport(2, slices.Concat(changes, []string{"-t", "t", "--op-column", column})...), want)
	}
	holds(t, tsimport(2, slices.Concat(load, []string{"-t", "t_{bucket(v, 2)}"})...), "load into one table")
	holds(t, tsimport(2, slices.Concat(load, []string{"-t", "versions"})...), "keeps 3 versions")
	refused := func(flags string) string { return tsimport(2, strings.Fields("load "+flags+" --mode changes")...) }
	holds(t, refused("c.csv --op-column op -t numbered"), "only --mode put creates rows")
	holds(t, refused("rows.jsonl -t t --pk id"), "do not say how rows have changed")
	holds(t, tsimport(2, "load", "rows.jsonl", "--op-column", "op", "-t", "t", "--pk", "id"), "--mode changes")
	holds(t, refused("d.json --op-column op -t t --pk id"), "omit --op-column")
	holds(t, tsimport(2, "load", "d.json", "--format", "debezium", "-t", "t", "--pk", "id"), "is for --mode changes")
	holds(t, tsimport(2, "load", "d.json", "-t", "t", "--pk", "id"), "--mode changes applies")
	holds(t, refused("d.json -t t --pk id"), "the event does not state the types")
	put(t, "n.json", `{"op":"c","after":{"id":"a","v":"x"},"source":{"table":"orders"}}`+"\n")
	tsimport(0, strings.Fields("load n.json --mode changes -t n --pk id:string --type id=string --type v=string -q")...)
	holds(t, tsimport(2, "verify", "c.csv", "--mode", "changes", "-t", "versions"), "does not show the final table")
}

func TestNothingIsWrittenAfterAFailedChange(t *testing.T) {
	for _, at := range []int{0, 5, 9} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			tsimport := commandsIn(t)
			lines := []string{"op,id,v"}
			for i := range 10 {
				op := "I"
				if i == at {
					op = "?"
				}
				lines = append(lines, fmt.Sprintf("%s,k%d,x", op, i))
			}
			put(t, "c.csv", strings.Join(lines, "\n")+"\n")
			load := []string{"load", "c.csv", "--mode", "changes", "--op-column", "op", "-t", "t", "--pk", "id:string"}
			said := tsimport(4, load...)
			holds(t, said, "the value does not name an operation", "--fresh", "none after it was")
			rows := tsimport(0, "export", "-t", "t", "-q")
			for i := range 10 {
				conformance.Equal(t, strings.Contains(rows, fmt.Sprintf("k%d,", i)), (i < at),
					"those before change %d are written, and no others: %s", at, rows)
			}
			runs := strings.Fields(said[strings.Index(said, "summary: ")+len("summary: "):])[0]
			holds(t, tsimport(2, "load", "--retry-rejects", path.Dir(runs)), "the run is unfinished; run tsimport resume ")
			put(t, "c.csv", strings.ReplaceAll(strings.Join(lines, "\n")+"\n", "?", "I"))
			tsimport(0, append(load, "--fresh", "-q")...)
			conformance.Equal(t, strings.Count(tsimport(0, "export", "-t", "t", "-q"), "\n"), 11, "lines")
		})
	}
}

// TestChangeLoadReportsItsLogPosition stops at a change that cannot be applied, resumes, and reaches the end.
func TestChangeLoadReportsItsLogPosition(t *testing.T) {
	conformance.NotForRaces(t)
	of := `"__debezium.source.column.type":"OTHER"`
	pad := strings.Repeat("x", 1000) // makes many splits
	schema := `{"pad":"` + pad + `","fields":[{"field":"after","fields":[{"field":"id","type":"string","parameters":{` +
		of + `}}]}]}`
	event := func(op string, i int, at string) string {
		return fmt.Sprintf(`{"schema":%s,"payload":{"op":%q,"before":{"id":"k%d"},"after":{"id":"k%[3]d"},"source":{"connector":"postgresql","db":"shop","schema":"public","table":"orders",%s,"ts_ms":%d}}}`+"\n",
			schema, op, i, at, 1_700_000_000_000+i)
	}
	canal := func(kind string, i int) string {
		return fmt.Sprintf(`{"database":"shop","table":"orders","isDdl":false,"sqlType":"`+pad+
			`","type":%q,"data":[{"id":"k%d"}],"mysqlType":{"id":"varchar(9)"},"es":%d}`+"\n", kind, i, 1_700_000_000_000+i)
	}
	for name, c := range map[string]struct {
		line  func(bad bool, i int) string
		after string
	}{
		"LSN": {func(bad bool, i int) string {
			return event(map[bool]string{true: "?", false: "c"}[bad], i, fmt.Sprint(`"lsn":`, 1<<32+i))
		}, `"lsn":"1/FA0"`},
		"binary log": {func(bad bool, i int) string {
			return event(map[bool]string{true: "?", false: "c"}[bad], i, fmt.Sprint(`"file":"b.7","pos":`, i))
		}, `"file":"b.7","position":4000`},
		"time": {func(bad bool, i int) string { return canal(map[bool]string{true: "MERGE", false: "INSERT"}[bad], i) },
			`"time":"2023-11-14T22:13:24Z"`},
	} {
		t.Run(name, func(t *testing.T) {
			tsimport := commandsIn(t)
			tsimport(0, "table", "create", "orders", "--pk", "id:string", "-q")
			stream := func(bad int) string {
				var text strings.Builder
				for i := range 4001 {
					text.WriteString(c.line(i == bad, i))
				}
				return text.String()
			}
			summary := func(code int, text string, more ...string) string {
				put(t, "c.json", text)
				tsimport(code, append(strings.Fields("load c.json --mode changes -t orders -q --run-dir run"), more...)...)
				summary := conformance.Try(os.ReadFile("run/summary.json")).Must(t)
				return strings.Join(strings.Fields(string(summary)), "")
			}
			early := summary(4, stream(2000))
			var at struct {
				From struct {
					LSN      string
					Position int
					Time     string
				} `json:"resume_from"`
			}
			must(t, json.Unmarshal([]byte(early), &at))
			conformance.True(t, at.From.LSN < "1/7D0" && at.From.Position < 2000 && at.From.Time < "2023-11-14T22:13:22Z" &&
				strings.Contains(early, "resume_from"), "of a load that has ended before change 2,000: %+v", at.From)
			for _, row := range strings.Fields(tsimport(0, "export", "-t", "orders", "-q"))[1:] {
				if i, err := strconv.Atoi(row[1:]); err != nil || i >= 2000 {
					t.Fatalf("%s is written, which comes after change 2,000, which cannot be applied (%v)", row, err)
				}
			}
			holds(t, summary(0, stream(-1), "--fresh"), `"resume_from":{`+c.after)
		})
	}
}
