package options

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/lifecycle"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/condition"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/convert"
)

// parsePolicy parses the policy for tables named by period. Ages count from the load's start, by the service's clock.
func parsePolicy(r *Request, cfg *pipeline.Config) (err error) {
	if r.AgePolicy == "" {
		return nil
	}
	if text := r.Now; text != "" {
		if cfg.Target.PolicyNow, err = time.Parse(time.RFC3339, text); err != nil {
			return fmt.Errorf("--now %q: want an RFC 3339 time, such as 2024-02-29T12:00:00Z", text)
		}
	}
	cfg.Target.Policy, err = lifecycle.Read(r.AgePolicy)
	return err
}

// Columns parses how input columns become table columns.
func Columns(r *Request) (columns plan.Columns, err error) {
	columns.Known = map[string]plan.Known{"strict": plan.KnownStrict, "infer": plan.KnownIgnored}[r.Types]
	columns.Only, columns.Exclude, columns.Types = r.Columns, r.Exclude, map[string]plan.Type{}
	if op, _, _ := strings.Cut(r.OpColumn, ":"); op != "" {
		columns.Exclude = append(slices.Clone(columns.Exclude), op)
	}
	columns.Rename = map[string]string{}
	for from, to := range r.Rename {
		if from == "" || to == "" {
			return columns, fmt.Errorf("--rename %q to %q: a name is missing", from, to)
		}
		columns.Rename[from] = to
	}
	for column, name := range r.Type {
		if columns.Types[column], err = parseType(name); err != nil {
			return columns, fmt.Errorf("--type %s=%s: %w", column, name, err)
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
	if t.Type, err = table.ParseType(name); err != nil {
		err = fmt.Errorf("type %q: want string, integer, double, boolean, binary, any or timestamp(LAYOUT,ZONE)", name)
	}
	return t, err
}

// cutTypes cuts a=double,b=integer at the comma, as what precedes it ends with a type. Other commas are part of a name.
func cutTypes(text string) []string {
	for i, r := range text {
		if r != ',' || !strings.Contains(text[i:], "=") {
			continue
		}
		_, name, ok := cutType(text[:i])
		if _, err := parseType(name); ok && err == nil {
			return append([]string{text[:i]}, cutTypes(text[i+1:])...)
		}
	}
	return []string{text}
}

// cutType cuts name=type. Names and timestamp layouts may contain equals signs.
func cutType(text string) (name, of string, ok bool) {
	i := strings.LastIndexByte(text, '=')
	if at := strings.Index(text, "=timestamp("); at > 0 {
		i = at
	}
	if i < 1 {
		return "", "", false
	}
	return text[:i], text[i+1:], true
}

func timestampSpec(name string) (string, bool) {
	spec, ok := strings.CutPrefix(name, "timestamp")
	if !ok || spec != "" && (spec[0] != '(' || spec[len(spec)-1] != ')') {
		return "", false
	}
	return strings.Trim(spec, "()"), true
}

// CutRename cuts old=new, where old may be quoted as in CSV.
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

// ParseList cuts a list at commas. Names that contain a comma are quoted as in CSV.
func ParseList(text string) ([]string, error) {
	if text == "" {
		return []string{}, nil
	}
	r := csv.NewReader(strings.NewReader(text))
	names, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("%q is not a list of names: %w", text, err)
	}
	if _, err := r.Read(); err != io.EOF {
		return nil, fmt.Errorf("%q: want the names on one line, separated by commas", text)
	}
	return names, nil
}

func parseWrite(r *Request, w *pipeline.Write) error {
	modes := map[string]table.Mode{"put": table.Put, "update": table.Update, "delete": table.Delete,
		"increment": table.Increment, "changes": table.Changes}
	conditions := map[string]table.Existence{"ignore": table.Ignore, "exist": table.ExpectExist,
		"not-exist": table.ExpectNotExist}
	w.Mode, w.Condition, w.DeleteNull = modes[r.Mode], conditions[r.Condition], r.OnNull == "delete"
	if text := r.When; text != "" {
		var err error
		if w.When, err = condition.ParseWhen(text); err != nil {
			return fmt.Errorf("--when %s: %w", text, err)
		}
	}
	return nil
}

// Computed parses --pk and --set.
func Computed(r *Request, target *plan.Target, columns *plan.Columns) error {
	for _, text := range r.PK {
		col, err := keyexpr.ParseColumn(text)
		if err != nil {
			return fmt.Errorf("--pk %w", err)
		}
		if col.Type != table.Null && !col.Type.KeyType() {
			return fmt.Errorf("--pk %s: a primary-key column must be string, integer or binary", text)
		}
		target.Key = append(target.Key, table.KeyColumn{Name: col.Name, Type: col.Type, Auto: col.Auto})
		if col.Expr != "" {
			columns.Keys = append(columns.Keys, col)
		}
	}
	for _, text := range r.Set {
		col, err := keyexpr.ParseColumn(text)
		if err != nil {
			return fmt.Errorf("--set %w", err)
		}
		if col.Expr == "" {
			return fmt.Errorf("--set %q: no expression; want NAME[:TYPE]=EXPR", text)
		}
		columns.Set = append(columns.Set, col)
	}
	return nil
}
