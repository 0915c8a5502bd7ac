package options

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"time"
	"tsimport/internal/table"
	"tsimport/internal/tablestore/condition"
	"tsimport/lifecycle"
	"tsimport/pipeline"
	"tsimport/pipeline/plan"
	"tsimport/reader/convert"
)

// parsePolicy reads the policy for tables by period. Ages count from the load's beginning, by the service's clock.
func parsePolicy(g Given, cfg *pipeline.Config) (err error) {
	if g.String("age-policy") == "" {
		return nil
	}
	if text := g.String("now"); text != "" {
		if cfg.Target.PolicyNow, err = time.Parse(time.RFC3339, text); err != nil {
			return fmt.Errorf("--now %q: want a time as in RFC 3339", text)
		}
	}
	cfg.Target.Policy, err = lifecycle.Read(g.String("age-policy"))
	return err
}

// Columns reads which columns of the inputs become which columns of the table.
func Columns(g Given) (columns plan.Columns, err error) {
	if columns.Known, err = plan.ParseKnown(g.String("types")); err != nil {
		return columns, err
	}
	if g.IsSet("columns") {
		if columns.Only, err = List(g.String("columns")); err != nil {
			return columns, fmt.Errorf("--columns: %w", err)
		}
	}
	for _, f := range g.Texts("exclude") {
		names, err := List(f)
		if err != nil {
			return columns, fmt.Errorf("--exclude: %w", err)
		}
		columns.Exclude = append(columns.Exclude, names...)
	}
	columns.Rename = map[string]string{}
	for _, f := range g.Texts("rename") {
		from, to, ok := CutRename(f)
		if !ok || from == "" || to == "" {
			return columns, fmt.Errorf("--rename %q: want old=new; a name with = in it is quoted, as in \"a=b\"=c", f)
		}
		if _, twice := columns.Rename[from]; twice {
			return columns, fmt.Errorf("--rename %s: given twice", from)
		}
		columns.Rename[from] = to
	}
	columns.Types = map[string]plan.Type{}
	for _, given := range g.Texts("type") {
		for _, f := range CutTypes(given) {
			column, name, ok := CutType(f)
			if !ok {
				return columns, fmt.Errorf("--type %q: want name=type", f)
			}
			if columns.Types[column], err = parseType(name); err != nil {
				return columns, fmt.Errorf("--type %s: %w", f, err)
			}
		}
	}
	return columns, nil
}

func parseType(name string) (t plan.Type, err error) {
	switch name {
	case "binary(hex)":
		return plan.Type{Type: table.Binary, Hex: true}, nil
	case "binary(base64)":
		return plan.Type{Type: table.Binary}, nil
	}
	if spec, ok := timestampSpec(name); ok {
		t.Type = table.Integer
		t.Time, err = convert.ParseTime(spec)
		return t, err
	}
	t.Type, err = table.ParseType(name)
	return t, err
}

// CutTypes cuts a=double,b=integer, which would else be a column with the name a=double,b: at commas between what are types by themselves.
func CutTypes(text string) []string {
	for i, r := range text {
		if r != ',' || !strings.Contains(text[i:], "=") {
			continue
		}
		_, name, ok := CutType(text[:i])
		if _, err := parseType(name); ok && err == nil {
			return append([]string{text[:i]}, CutTypes(text[i+1:])...)
		}
	}
	return []string{text}
}

// CutType cuts name=type. A name may have an equal sign, and so may the layout of a timestamp.
func CutType(text string) (name, of string, ok bool) {
	i := strings.LastIndexByte(text, '=')
	if at := strings.Index(text, "=timestamp("); at > 0 {
		i = at
	}
	if i < 1 {
		return "", "", false
	}
	return text[:i], text[i+1:], true
}

// timestampSpec returns what stands in timestamp(…).
func timestampSpec(name string) (string, bool) {
	spec, ok := strings.CutPrefix(name, "timestamp")
	if !ok || spec != "" && (spec[0] != '(' || spec[len(spec)-1] != ')') {
		return "", false
	}
	return strings.Trim(spec, "()"), true
}

// CutRename cuts old=new; old may be quoted as in CSV.
func CutRename(text string) (from, to string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		return strings.Cut(text, "=")
	}
	end := strings.LastIndex(text, `"=`)
	if end < 1 {
		return "", "", false
	}
	return strings.ReplaceAll(text[1:end], `""`, `"`), text[end+2:], true
}

// List cuts a list at commas; a name with a comma in it is quoted as in CSV.
func List(text string) ([]string, error) {
	if text == "" {
		return []string{}, nil
	}
	r := csv.NewReader(strings.NewReader(text))
	names, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("%q is not a list of names: %w", text, err)
	}
	if _, err := r.Read(); err != io.EOF {
		return nil, fmt.Errorf("%q is not one list of names", text)
	}
	return names, nil
}

func parseWrite(g Given, w *pipeline.Write) error {
	modes := map[string]table.Mode{"put": table.Put, "update": table.Update, "delete": table.Delete, "increment": table.Increment}
	conditions := map[string]table.Existence{"ignore": table.Ignore, "exist": table.ExpectExist, "not-exist": table.ExpectNotExist}
	var ok bool
	if w.Mode, ok = modes[g.String("mode")]; !ok {
		return fmt.Errorf("--mode %q: want put, update, delete or increment", g.String("mode"))
	}
	if w.Condition, ok = conditions[g.String("condition")]; !ok {
		return fmt.Errorf("--condition %q: want ignore, exist or not-exist", g.String("condition"))
	}
	if text := g.String("when"); g.IsSet("when") {
		var err error
		if w.When, err = condition.ParseWhen(text); err != nil {
			return fmt.Errorf("--when %s: %w", text, err)
		}
	}
	switch g.String("on-null") {
	case "skip":
	case "delete":
		w.DeleteNull = true
	default:
		return fmt.Errorf("--on-null %q: want skip or delete", g.String("on-null"))
	}
	return nil
}
