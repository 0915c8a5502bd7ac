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
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/cmd/tsimport/commands"
	"example.com/tsimport/engine/enginetest"
	"example.com/tsimport/internal/conformance"
)

var (
	seeds     = flag.Int("composition-seeds", 2, "how many pairs of inputs are drawn of each theme")
	firstSeed = flag.Uint64("composition-seed", 1, "the seed of the first pair of each theme")
)

type outcome struct {
	exit     int
	said     string
	rejected map[string]string // reasons by FILE:NUMBER
}

// load runs a load with the flags in the current folder. These tests use the loader in no other way.
func load(t *testing.T, e *enginetest.Engine, table string, flags, inputs []string) outcome {
	t.Helper()
	before := conformance.Try(filepath.Glob("tsimport-runs/*/rejects.jsonl")).Must(t)
	args := strings.Fields("tsimport load --create --endpoint " + e.URL + " --instance " + e.Instance + " -t " + table)
	args = append(args, flags...)
	var stdout, stderr bytes.Buffer
	o := outcome{exit: commands.Run(append(args, inputs...), &stdout, &stderr), said: stderr.String(),
		rejected: map[string]string{}}
	after := conformance.Try(filepath.Glob("tsimport-runs/*/rejects.jsonl")).Must(t)
	for _, name := range after {
		if slices.Contains(before, name) {
			continue
		}
		reasons := conformance.Try(os.ReadFile(name)).Must(t)
		for line := range bytes.Lines(reasons) {
			var r struct {
				File    string
				Record  int
				Message string
			}
			conformance.MustEqual(t, json.Unmarshal(line, &r), nil, "%s", name)
			o.rejected[fmt.Sprintf("%s:%d", filepath.Base(r.File), r.Record)] = r.Message
		}
	}
	return o
}

// rows reads a table with the SDK. A missing table has no rows.
func rows(t *testing.T, e *enginetest.Engine, table string) []Row {
	t.Helper()
	client := e.Client()
	tables := conformance.Try(client.ListTable()).Must(t)
	if !slices.Contains(tables.TableNames, table) {
		return nil
	}
	meta := conformance.Try(client.DescribeTable(&tablestore.DescribeTableRequest{TableName: table})).Must(t)
	key := meta.TableMeta.SchemaEntry[0].Name
	start, end := new(tablestore.PrimaryKey), new(tablestore.PrimaryKey)
	start.AddPrimaryKeyColumnWithMinValue(*key)
	end.AddPrimaryKeyColumnWithMaxValue(*key)
	var all []Row
	for start != nil {
		page, err := client.GetRange(&tablestore.GetRangeRequest{RangeRowQueryCriteria: &tablestore.RangeRowQueryCriteria{
			TableName: table, StartPrimaryKey: start, EndPrimaryKey: end, Direction: tablestore.FORWARD, MaxVersion: 1,
		}})
		conformance.Must(t, err)
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

// judged returns the verdict on a load of files into a table that had the rows of written, and the records now there.
func judged(l *Load, o outcome, written []Record, files []File, table []Row) (verdict, why string, now []Record) {
	wrong := func(format string, a ...any) (string, string, []Record) {
		return "different", fmt.Sprintf(format, a...), nil
	}
	now = written
	switch o.exit {
	case 2:
		// A load may refuse files whose records are all rejected: nothing determines the type of a new table's key.
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
	// A key takes the most frequent kind; records of an incompatible rarer kind are rejected.
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

// spoiled returns tables with one error each. A judge that accepts one of them would accept a broken load.
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

// compose loads a pair of files in every way that must leave the same table, and returns a verdict for each.
func compose(t *testing.T, e *enginetest.Engine, l *Load) (verdicts []string, wrong string) {
	folder := t.TempDir()
	t.Chdir(folder)
	defer func() { conformance.Equal(t, os.RemoveAll(folder), nil, "RemoveAll") }()
	for _, f := range l.Files {
		conformance.Must(t, os.MkdirAll(filepath.Dir(filepath.FromSlash(f.Path)), 0o700))
		conformance.Must(t, os.WriteFile(filepath.FromSlash(f.Path), f.Content, 0o600))
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
			v, _, _ := judged(l, o, before, files, broken)
			conformance.Equal(t, v, "different", "seed %d, %s: a table with %s is judged", l.Seed, l.Theme, name)
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

// TestTwoInputsLeaveTheExpectedTable loads pairs together and in both orders. A load may be refused or name rejects.
func TestTwoInputsLeaveTheExpectedTable(t *testing.T) {
	e := enginetest.Start(t)
	t.Setenv("TABLESTORE_ACCESS_KEY_ID", e.AccessKeyID)
	t.Setenv("TABLESTORE_ACCESS_KEY_SECRET", e.AccessKeySecret)
	for _, theme := range themes {
		t.Run(theme.name, func(t *testing.T) {
			count, n := map[string]int{}, *seeds
			if theme.name == "after the sample" { // its files are larger than a sample
				n = (n + 3) / 4
			}
			if testing.Short() { // the race detector is slow
				n = min(n, 1)
			}
			for seed := *firstSeed; seed < *firstSeed+uint64(n); seed++ {
				e.Reset(t)
				verdicts, wrong := compose(t, e, Draw(theme, seed))
				for _, v := range verdicts {
					count[v]++
				}
				conformance.True(t, wrong == "",
					"%s\nagain: go test ./cmd/tsimport/commands -run 'TestTwoInputs/^%s$' -composition-seed %d -composition-seeds 1",
					wrong, strings.ReplaceAll(theme.name, " ", "_"), seed)
			}
			t.Logf("%d pairs: %d loads refused, %d with rejected records, %d equal, %d different", n, count["refused"],
				count["rejected"], count["equal"], count["different"])
		})
	}
}

// Kind is the meaning of a cell, regardless of its spelling in a file.
type Kind int

const (
	Null Kind = iota
	Integer
	Decimal // Text has its digits, N the unscaled integer, Unit the scale
	Text
	ID       // an ObjectId of MongoDB, Text has its digits
	Instant  // N counts nanoseconds since 1970 in UTC
	Local    // N counts nanoseconds since 1970 in an unknown zone
	Duration // N counts nanoseconds
)

type Cell struct {
	Kind Kind
	Text string
	N    int64
	Unit int64  // nanoseconds per unit of the file's times
	Tag  string // the value as a JSON object of MongoDB; "" if there is none
	// Typed is set if the file determines the kind of the value. CSV does not: its text gets the kind of the other files.
	Typed bool
}

// A form is one way in which a table column can represent the cells of its records. All cells of a column must have the
// same form, or one value would have two meanings. holds reports whether v, in the SDK's type, represents the cell.
type form struct {
	name  string
	holds func(c Cell, v any) bool
}

var keyForms = []form{
	{"integer", func(c Cell, v any) bool { n, ok := integer(c); return ok && v == n }},
	{"text", func(c Cell, v any) bool { return c.Kind != Instant && v == spelled(c) }},
	{"tagged text", func(c Cell, v any) bool { return v == tagged(c) }},
}

var forms = []form{
	{"integer", func(c Cell, v any) bool { n, ok := integer(c); return ok && v == n }},
	{"double", func(c Cell, v any) bool { f, ok := double(c); return ok && v == f }},
	{"text, times in UTC", func(c Cell, v any) bool { return c.Kind != Local && text(c, v) }},
	{"text, local times", func(c Cell, v any) bool { return c.Kind != Instant && text(c, v) }},
	{"tagged text", func(c Cell, v any) bool { return c.Tag != "" && v == c.Tag || c.Tag == "" && own(c, v) }},
	{"each value in its own type", own}, unscaled(2), unscaled(3), units("s", time.Second), units("ms", time.Millisecond),
	units("µs", time.Microsecond), units("ns", 1),
}

// units is the form of times as integers. Numbers in files without types fit it, typed integers do not.
func units(name string, unit time.Duration) form {
	return form{"integer (" + name + ")", func(c Cell, v any) bool {
		if c.Kind == Instant || c.Kind == Local || c.Kind == Duration {
			return c.N%int64(unit) == 0 && v == c.N/int64(unit)
		}
		n, ok := integer(c)
		return !c.Typed && ok && v == n
	}}
}

func unscaled(scale int64) form {
	return form{"unscaled integer (" + strconv.FormatInt(scale, 10) + ")", func(c Cell, v any) bool {
		return c.Kind == Decimal && c.Typed && c.Unit == scale && v == c.N
	}}
}

// own is the form of columns with several types, in which each value has its own. Text without a type may have either.
func own(c Cell, v any) bool {
	if c.Kind == Instant || c.Kind == Duration {
		return c.Kind == Instant && text(c, v)
	}
	n, isInteger := integer(c)
	f, isDouble := double(c)
	return isInteger && v == n || c.Kind == Decimal && isDouble && v == f || (!c.Typed || c.Kind != Integer) && text(c, v)
}

func integer(c Cell) (int64, bool) {
	if c.Kind == Text && !c.Typed {
		n, err := strconv.ParseInt(c.Text, 10, 64)
		return n, err == nil && strconv.FormatInt(n, 10) == c.Text
	}
	return c.N, c.Kind == Integer
}

func double(c Cell) (float64, bool) {
	if c.Kind != Integer && c.Kind != Decimal {
		return 0, false
	}
	f, err := strconv.ParseFloat(spelled(c), 64)
	return f, err == nil
}

func spelled(c Cell) string {
	if c.Kind == Integer {
		return strconv.FormatInt(c.N, 10)
	}
	return c.Text
}

func tagged(c Cell) string {
	if c.Tag != "" {
		return c.Tag
	}
	return spelled(c)
}

// text reports whether v is the text of c. Texts of an instant may have different numbers of digits.
func text(c Cell, v any) bool {
	s, ok := v.(string)
	if !ok || c.Kind == Duration {
		return false
	}
	if c.Kind != Instant && c.Kind != Local {
		return s == spelled(c)
	}
	if strings.HasSuffix(s, "Z") != (c.Kind == Instant) {
		return false
	}
	t, err := time.Parse("2006-01-02T15:04:05.999999999", strings.TrimSuffix(s, "Z"))
	return err == nil && t.Equal(time.Unix(0, c.N))
}

type Record struct {
	File   string // base name of its input; rejects have it with Number
	Number int
	Key    Cell
	Cells  map[string]Cell
	// Reject is set if the record must be rejected, for example because it is the seam of two joined files.
	Reject bool
}

type Row struct {
	Key   any
	Cells map[string]any
}

// Judge returns how rows differ from the result of replacing or (if update) merging rows by the records, or "".
func Judge(records []Record, update bool, rows []Row) string {
	wrong := ""
	for _, f := range keyForms {
		why, whole := judge(records, update, rows, f)
		if why == "" {
			return ""
		}
		if wrong == "" || whole {
			wrong = why
		}
	}
	return wrong
}

// judge is like Judge, for one form of the key. whole reports whether the rows have the keys of the records.
func judge(records []Record, update bool, rows []Row, key form) (why string, whole bool) {
	wanted := make([]map[string]Cell, len(rows))
	for _, r := range records {
		i := slices.IndexFunc(rows, func(row Row) bool { return key.holds(r.Key, row.Key) })
		if i < 0 {
			return fmt.Sprintf("no row of record %d of %s, key %q", r.Number, r.File, spelled(r.Key)), false
		}
		if wanted[i] == nil || !update {
			wanted[i] = map[string]Cell{}
		}
		for name, c := range r.Cells {
			if c.Kind != Null {
				wanted[i][name] = c
			}
		}
	}
	names := map[string]bool{}
	for i, row := range rows {
		if wanted[i] == nil {
			return fmt.Sprintf("a row %v without a record", row.Key), false
		}
		for name := range wanted[i] {
			names[name] = true
			if _, ok := row.Cells[name]; !ok {
				return fmt.Sprintf("row %v lacks %s", row.Key, name), true
			}
		}
		for name, v := range row.Cells {
			if _, ok := wanted[i][name]; !ok {
				return fmt.Sprintf("row %v has %s = %v, which no record gave it", row.Key, name, v), true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if tried := column(name, rows, wanted); tried != "" {
			return fmt.Sprintf("column %s has no one form: %s", name, tried), true
		}
	}
	return "", true
}

// column returns "" if some form fits a column. Otherwise it returns the first value that contradicts each form.
func column(name string, rows []Row, wanted []map[string]Cell) string {
	var tried []string
	for _, f := range forms {
		contradiction := ""
		for i, row := range rows {
			if c, ok := wanted[i][name]; ok && !f.holds(c, row.Cells[name]) {
				contradiction = fmt.Sprintf("row %v: %T %v for %+v, not %s", row.Key, row.Cells[name], row.Cells[name], c, f.name)
				break
			}
		}
		if contradiction == "" {
			return ""
		}
		tried = append(tried, contradiction)
	}
	return strings.Join(tried, "; ")
}
