package commands_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/cmd/tsimport/commands"
	"example.com/tsimport/engine/enginetest"
	"example.com/tsimport/internal/conformance"
)

var must = conformance.Must

var (
	seeds     = flag.Int("composition-seeds", 2, "how many pairs of inputs are drawn of each theme")
	firstSeed = flag.Uint64("composition-seed", 1, "the seed of the first pair of each theme")
)

// outcome is how a load ended.
type outcome struct {
	exit     int
	said     string
	rejected map[string]string // FILE:NUMBER to the reason
}

// load runs a load with the flags in the current folder. It is the only way in which these tests reach the loader.
func load(t *testing.T, e *enginetest.Engine, table string, flags, inputs []string) outcome {
	t.Helper()
	before, err := filepath.Glob("tsimport-runs/*/rejects.jsonl")
	must(t, err)
	args := append([]string{"tsimport", "load", "--endpoint", e.URL, "--instance", e.Instance, "--table", table, "--create"}, flags...)
	var stdout, stderr bytes.Buffer
	o := outcome{exit: commands.Run(append(args, inputs...), &stdout, &stderr), said: stderr.String(), rejected: map[string]string{}}
	after, err := filepath.Glob("tsimport-runs/*/rejects.jsonl")
	must(t, err)
	for _, name := range after {
		if slices.Contains(before, name) {
			continue
		}
		reasons, err := os.ReadFile(name)
		must(t, err)
		for line := range bytes.Lines(reasons) {
			var r struct {
				File    string
				Record  int
				Message string
			}
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			o.rejected[fmt.Sprintf("%s:%d", filepath.Base(r.File), r.Record)] = r.Message
		}
	}
	return o
}

// rows reads a table by the SDK; a table that is not there has none.
func rows(t *testing.T, e *enginetest.Engine, table string) []Row {
	t.Helper()
	client := e.Client()
	tables, err := client.ListTable()
	must(t, err)
	if !slices.Contains(tables.TableNames, table) {
		return nil
	}
	meta, err := client.DescribeTable(&tablestore.DescribeTableRequest{TableName: table})
	must(t, err)
	key := meta.TableMeta.SchemaEntry[0].Name
	start, end := new(tablestore.PrimaryKey), new(tablestore.PrimaryKey)
	start.AddPrimaryKeyColumnWithMinValue(*key)
	end.AddPrimaryKeyColumnWithMaxValue(*key)
	var all []Row
	for start != nil {
		page, err := client.GetRange(&tablestore.GetRangeRequest{RangeRowQueryCriteria: &tablestore.RangeRowQueryCriteria{
			TableName: table, StartPrimaryKey: start, EndPrimaryKey: end, Direction: tablestore.FORWARD, MaxVersion: 1,
		}})
		must(t, err)
		for _, r := range page.Rows {
			row := Row{Key: r.PrimaryKey.PrimaryKeys[0].Value, Cells: map[string]any{}}
			for _, c := range r.Columns {
				row.Cells[c.ColumnName] = c.Value
			}
			all = append(all, row)
		}
		start = page.NextStartPrimaryKey
	}
	return all
}

// judged is the verdict on a load of the files, after others that left written in the table.
func judged(l *Load, o outcome, written []Record, files []File, table []Row) (verdict, why string, now []Record) {
	wrong := func(format string, a ...any) (string, string, []Record) {
		return "different", fmt.Sprintf(format, a...), nil
	}
	now = written
	switch o.exit {
	case 2:
		// Nothing tells the type of the key of a new table if all records are to be rejected.
		loadable := func(f File) bool { return slices.ContainsFunc(f.Records, func(r Record) bool { return !r.Reject }) }
		if l.Must && slices.ContainsFunc(files, loadable) {
			return wrong("refused")
		}
		if why := Judge(written, l.Update, table); why != "" {
			return wrong("refused, and the table is changed: %s", why)
		}
		return "refused", "", written
	case 0, 3:
	default:
		return wrong("exit code %d", o.exit)
	}
	kinds := map[Kind]int{}
	total, rejected := 0, 0
	for _, f := range files {
		for _, r := range f.Records {
			id := fmt.Sprintf("%s:%d", r.File, r.Number)
			reason, gone := o.rejected[id]
			delete(o.rejected, id)
			switch {
			case r.Reject && !gone:
				return wrong("%s was not rejected", id)
			case gone && !r.Reject && l.Must:
				return wrong("%s was rejected: %s", id, reason)
			case gone && !r.Reject:
				rejected++
			case !gone:
				now = append(slices.Clip(now), r)
			}
			if !r.Reject {
				kinds[r.Key.Kind]++
				total++
			}
		}
	}
	if len(o.rejected) > 0 {
		return wrong("rejected what no file has: %v", o.rejected)
	}
	// A key takes the kind of the many: of two that exclude each other, the rarer one is rejected.
	if len(kinds) > 1 {
		if most := slices.Max(slices.Collect(maps.Values(kinds))); rejected > total-most {
			return wrong("%d of %d records were rejected, though %d have keys of one kind", rejected, total, most)
		}
	}
	if why := Judge(now, l.Update, table); why != "" {
		return wrong("%s", why)
	}
	if rejected > 0 {
		return "rejected", "", now
	}
	return "equal", "", now
}

// spoiled are tables in which one thing is wrong: a judge that passes one of them would pass a broken load.
func spoiled(table []Row) map[string][]Row {
	if len(table) == 0 {
		return nil
	}
	at, last := len(table)/2, len(table)-1
	broken := map[string][]Row{
		"a row less": slices.Delete(slices.Clone(table), at, at+1),
		"a row more": append(slices.Clone(table), Row{Key: "of no record", Cells: table[last].Cells}),
	}
	for name, v := range table[at].Cells {
		other := slices.Clone(table)
		other[at].Cells = maps.Clone(table[at].Cells)
		delete(other[at].Cells, name)
		broken["no "+name] = other
		other = slices.Clone(table)
		other[at].Cells = maps.Clone(table[at].Cells)
		switch v := v.(type) {
		case string:
			other[at].Cells[name] = v + "x"
		case int64:
			other[at].Cells[name] = v + 1
		case float64:
			other[at].Cells[name] = v + 1
		case bool:
			other[at].Cells[name] = !v
		case []byte:
			other[at].Cells[name] = append(slices.Clone(v), 'x')
		}
		broken["another "+name] = other
	}
	return broken
}

// compose loads a pair in every way in which it must leave one table, and returns a verdict for each.
func compose(t *testing.T, e *enginetest.Engine, l *Load) (verdicts []string, wrong string) {
	t.Helper()
	folder := t.TempDir()
	t.Chdir(folder)
	defer func() {
		conformance.Equal(t, os.RemoveAll(folder), nil, "RemoveAll")
	}()
	for _, f := range l.Files {
		must(t, os.MkdirAll(filepath.Dir(filepath.FromSlash(f.Path)), 0o700))
		must(t, os.WriteFile(filepath.FromSlash(f.Path), f.Content, 0o600))
	}
	var inputs []File
	for _, f := range l.Files {
		if !f.Leftover {
			inputs = append(inputs, f)
		}
	}
	flags := append([]string{"--pk", l.Key}, l.Flags...)
	if l.Seed%3 == 0 {
		flags = append(flags, "--only-new")
	}
	try := func(way, table string, arguments []string, before []Record, files []File) []Record {
		o := load(t, e, table, flags, arguments)
		rejected, left := maps.Clone(o.rejected), rows(t, e, table)
		verdict, why, now := judged(l, o, before, files, left)
		verdicts = append(verdicts, verdict)
		for name, broken := range spoiled(left) {
			o.rejected = maps.Clone(rejected)
			if v, _, _ := judged(l, o, before, files, broken); v != "different" {
				t.Errorf("seed %d, %s: a table with %s is judged %s", l.Seed, l.Theme, name, v)
			}
		}
		if verdict == "different" && wrong == "" {
			wrong = fmt.Sprintf("seed %d, %s, %s (%v %v): %s\n%s", l.Seed, l.Theme, way, flags, arguments, why, o.said)
		}
		return now
	}
	try("together", "together", l.Arguments(), nil, inputs)
	var written []Record
	for _, f := range inputs {
		if wrong == "" {
			written = try("one after the other", "apart", []string{f.Path}, written, []File{f})
		}
	}
	if l.Folder == "" && l.Seed%4 == 0 && l.Seed%3 != 0 && wrong == "" {
		turned := []File{inputs[1], inputs[0]}
		try("in the other order", "turned", []string{turned[0].Path, turned[1].Path}, nil, turned)
	}
	return verdicts, wrong
}

// TestTwoInputsLeaveTheTableThatTheyMean loads pairs of inputs together, one after the other and in the other order. Each load leaves
// the table that its records mean, or is refused, or rejects records by name.
func TestTwoInputsLeaveTheTableThatTheyMean(t *testing.T) {
	e := enginetest.Start(t)
	t.Setenv("TABLESTORE_ACCESS_KEY_ID", e.AccessKeyID)
	t.Setenv("TABLESTORE_ACCESS_KEY_SECRET", e.AccessKeySecret)
	for _, theme := range themes {
		t.Run(theme.name, func(t *testing.T) {
			count, n := map[string]int{}, *seeds
			if theme.name == "after the sample" { // whose files are more than a sample
				n = (n + 3) / 4
			}
			if testing.Short() { // for the race detector
				n = min(n, 1)
			}
			for seed := *firstSeed; seed < *firstSeed+uint64(n); seed++ {
				e.Reset(t)
				verdicts, wrong := compose(t, e, Draw(theme, seed))
				for _, v := range verdicts {
					count[v]++
				}
				if wrong != "" {
					t.Errorf("%s\nagain: go test ./cmd/tsimport/commands -run 'TestTwoInputs/^%s$' -composition-seed %d -composition-seeds 1", wrong, strings.ReplaceAll(theme.name, " ", "_"), seed)
				}
			}
			t.Logf("%d pairs: %d loads refused, %d with rejected records, %d equal, %d different", n, count["refused"], count["rejected"], count["equal"], count["different"])
		})
	}
}
