package job

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"example.com/tsimport/internal/table"
)

// placeholder matches the part of a load's name that is replaced by a part of an input's name.
var placeholder = regexp.MustCompile(`\{([a-z][a-z0-9_]*)\}`)

// loadName matches a load's name, which is also the name of its folder. maxLoadName limits its length.
var loadName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

const maxLoadName = 255

func isLoadName(name string) bool { return len(name) <= maxLoadName && loadName.MatchString(name) }

// IsName reports whether a load may have this name.
func IsName(name string) bool {
	return isLoadName(name) && !slices.Contains(reserved, strings.ToLower(name))
}

// found matches the values of a placeholder.
var found = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// reserved lists the names of other files in a job's folder, in lower case.
var reserved = []string{"lock", FolderFile, ChangesFile}

func (d *document) checkName(name string, line int) error {
	parts := placeholder.FindAllString(name, -1)
	if len(parts) > 1 {
		return d.errorf(line, "load %s: want at most one part in braces", quoted(name))
	}
	if plain := placeholder.ReplaceAllString(name, "x"); !isLoadName(plain) {
		return d.errorf(line, "load %s: a name has letters, digits, _, -, . and one part such as {table}", quoted(name))
	}
	if slices.Contains(reserved, strings.ToLower(name)) {
		return d.errorf(line, "load %s: the job's folder has a file of this name; choose another", quoted(name))
	}
	return nil
}

// Found is an input that matches a pattern.
type Found struct {
	Name string // in the form of from
	// Table is the name of a database table, or "" for a file. A table that cannot be loaded does not stop others.
	Table string
}

// Finder finds the inputs of a load that match a pattern.
type Finder func(ctx context.Context, l *Single, pattern string) ([]Found, error)

// NoInputError reports that no input is left for a placeholder such as {table}: none matches, or except leaves out all.
type NoInputError struct{ Cause *Error }

func (e *NoInputError) Error() string { return e.Cause.Error() }
func (e *NoInputError) Unwrap() error { return e.Cause }

// Expand returns the file with one load per value found for a placeholder such as {table}.
func (f *File) Expand(ctx context.Context, lookup Lookup, find Finder) (*File, error) {
	out := *f
	out.Loads = nil
	of := map[string][]string{} // names of the loads made from each load
	for _, l := range f.Loads {
		made, err := l.expand(ctx, f.Path, lookup, find)
		if err != nil {
			return nil, err
		}
		for _, m := range made {
			of[l.Name] = append(of[l.Name], m.Name)
		}
		out.Loads = append(out.Loads, made...)
	}
	if len(out.Loads) > mostLoads {
		return nil, &Error{f.Path, 0, fmt.Sprintf("%d loads; a job has at most %d", len(out.Loads), mostLoads)}
	}
	for i := range out.Loads {
		l := &out.Loads[i]
		var after []string
		for _, name := range l.After {
			made, ok := of[name]
			if !ok {
				made = []string{name}
			}
			after = append(after, made...)
		}
		l.After = after
	}
	return &out, nil
}

// expand makes one load per value of the placeholder in the name, or returns the load itself if it has none.
func (s *Single) expand(ctx context.Context, file string, lookup Lookup, find Finder) ([]Single, error) {
	m := placeholder.FindStringSubmatch(s.Name)
	if m == nil {
		return []Single{*s}, nil
	}
	hole := m[0]
	fail := func(format string, a ...any) error {
		return &Error{file, s.line, fmt.Sprintf("load %s: ", s.Name) + fmt.Sprintf(format, a...)}
	}
	if s.Command != Load && s.Command != Sync {
		return nil, fail("%s stands for a part of file names, but a load of tsimport %s reads no files", hole, s.Command)
	}
	resolved, err := s.Resolve(file, lookup)
	if err != nil {
		return nil, err
	}
	patterns := map[string]map[int]bool{} // the patterns that matched each value
	holes, leftOut := 0, false
	var refused []Found
	for i, pattern := range resolved.From {
		if !strings.Contains(pattern, hole) {
			continue
		}
		holes++
		names, err := find(ctx, &resolved, strings.ReplaceAll(pattern, hole, "*"))
		if err != nil {
			return nil, err
		}
		for _, one := range names {
			value, err := valueOf(pattern, hole, one.Name)
			if s.leavesOut(value, one.Table) {
				leftOut = true
				continue
			}
			switch {
			case err != nil && one.Table == "":
				return nil, fail("%v", err)
			case err != nil:
				refused = append(refused, one)
				continue
			}
			if patterns[value] == nil {
				patterns[value] = map[int]bool{}
			}
			patterns[value][i] = true
		}
	}
	switch {
	case holes == 0:
		return nil, fail("from does not contain %s, so its values are unknown", hole)
	case len(patterns)+len(refused) == 0 && leftOut:
		return nil, &NoInputError{&Error{file, s.line, fmt.Sprintf("load %s: except leaves out every input of from", s.Name)}}
	case len(patterns)+len(refused) == 0:
		return nil, &NoInputError{&Error{file, s.line, fmt.Sprintf("load %s: no input has a name such as %s", s.Name,
			strings.Join(resolved.From, ", "))}}
	}
	var made []Single
	for _, value := range slices.Sorted(maps.Keys(patterns)) {
		made = append(made, s.checked(s.with(hole, value, patterns[value]), value, made))
	}
	for _, one := range refused {
		name := freeName(strings.ReplaceAll(s.Name, hole, one.Table), made)
		l := s.with(hole, name, nil)
		l.Name = name
		l.Refused = fmt.Sprintf("%s matches only letters, digits, _ and -, not table %s; %s", hole, one.Table,
			loadAlone(one.Table))
		made = append(made, l)
	}
	return made, nil
}

func (s *Single) leavesOut(value, table string) bool {
	return slices.ContainsFunc(s.except, func(pattern string) bool {
		whole := regexp.MustCompile(`(?s)^` + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`) + `$`)
		return value != "" && whole.MatchString(value) || table != "" && whole.MatchString(table)
	})
}

// loadAlone returns advice for a table that a load with a placeholder cannot load.
func loadAlone(name string) string {
	quoted, _ := json.Marshal(name) // marshalling a string cannot fail
	return fmt.Sprintf("leave it out with except: [%s], or add a load with another name that names it with table", quoted)
}

// checked returns a load made for a value. It is refused if an earlier one has its name, or the name is invalid.
func (s *Single) checked(l Single, value string, made []Single) Single {
	var why error
	if at := l.Table(); !strings.ContainsAny(at, "{$:") { // periods, variables, addresses
		why = table.CheckTableName(at)
	}
	if !IsName(l.Name) {
		why = errors.New("invalid load name: want letters, digits, _, - and ., not beginning with - or ., and not " +
			"the name of a file in the job's folder")
	}
	if free := freeName(l.Name, made); free != l.Name {
		why = cmp.Or(why, errors.New("another load's name differs only in case, so both could get the same run folder"))
		l.Name = free
	}
	if why != nil {
		l.Refused = fmt.Sprintf("%s: %v; %s", value, why, loadAlone(value))
	}
	return l
}

func freeName(text string, made []Single) string {
	name := []byte(text)
	for i, c := range name {
		if !loadName.Match([]byte{'x', c}) || i == 0 && !loadName.Match([]byte{c}) {
			name[i] = '_'
		}
	}
	base := string(name[:min(len(name), 200)])
	taken := func(name string) bool {
		return !IsName(name) || slices.ContainsFunc(made, func(l Single) bool { return strings.EqualFold(l.Name, name) })
	}
	free := base
	for n := 2; taken(free); n++ {
		free = fmt.Sprintf("%s-%d", base, n)
	}
	return free
}

// with returns the load for one value. It reads the patterns that matched the value and those without a placeholder.
func (s *Single) with(hole, value string, by map[int]bool) Single {
	out := *s
	out.Name, out.From, out.Settings = strings.ReplaceAll(s.Name, hole, value), nil, nil
	for i, pattern := range s.From {
		if by[i] || !strings.Contains(pattern, hole) {
			out.From = append(out.From, strings.ReplaceAll(pattern, hole, value))
		}
	}
	for _, t := range s.Settings {
		t.Values = slices.Clone(t.Values)
		for i, v := range t.Values {
			t.Values[i] = strings.ReplaceAll(v, hole, value)
		}
		out.Settings = append(out.Settings, t)
	}
	if !slices.Contains(s.After, s.Name) {
		out.After = nil
		for _, name := range s.After {
			if placeholder.FindString(name) == hole && name != hole {
				name = strings.ReplaceAll(name, hole, value)
			}
			out.After = append(out.After, name)
		}
	}
	return out
}

// valueOf returns the value of a placeholder in an input's name, which must be unambiguous to name the right table.
func valueOf(pattern, hole, name string) (string, error) {
	before, after, _ := strings.Cut(pattern, hole)
	literal := before[strings.LastIndexAny(before, `*?[]{}\`)+1:] // text before the value
	if j := strings.IndexAny(after, `*?[]{}\`); j >= 0 {
		after = after[:j]
	}
	var fits []string
	for from := range name {
		if !strings.HasSuffix(name[:from], literal) {
			continue
		}
		for to := from + 1; to <= len(name) && found.MatchString(name[from:to]); to++ {
			value := name[from:to]
			if !strings.HasPrefix(name[to:], after) || slices.Contains(fits, value) {
				continue
			}
			if ok, err := doublestar.Match(strings.ReplaceAll(pattern, hole, value), name); err == nil && ok {
				fits = append(fits, value)
			}
		}
	}
	switch len(fits) {
	case 0:
		return "", fmt.Errorf("from matches %s, but the part for %s may only have letters, digits, _ and -", name, hole)
	case 1:
		return fits[0], nil
	}
	return "", fmt.Errorf("from matches %s with %s as %s; be more specific", name, strings.Join(fits[:2], " or "), hole)
}
