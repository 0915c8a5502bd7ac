package job

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/pipeline/options"
)

// Limits of a job file.
const (
	maxFileBytes = 1 << 20
	mostLoads    = 2_000
)

// Version is the version of the format of job files.
const Version = 1

// File is a parsed job file. Variables in its values are not yet replaced.
type File struct {
	Path     string
	Parallel int       // maximum number of concurrent loads; 0 if not set
	Common   []Setting // shared limits of the job's loads
	Loads    []Single
}

// Single is one load of a job. Its name may contain {…} until Expand.
type Single struct {
	Name     string    `json:"name"`
	Command  string    `json:"command"`
	From     []string  `json:"from,omitempty"`
	Settings []Setting `json:"settings"`
	After    []string  `json:"after,omitempty"`
	// Refused is the reason why a load made by Expand cannot run, or "" if it can.
	Refused string   `json:"refused,omitempty"`
	except  []string // patterns of values that the placeholder leaves out
	line    int
}

// Setting is a key with its values, one per occurrence of the flag.
type Setting struct {
	Key    string   `json:"key"`
	Values []string `json:"values"`
	line   int
}

// Line returns the setting's line in the file, or 0 if it is not from the file.
func (s *Setting) Line() int { return s.line }

// Value returns the first value of a key, or "" if it is not set.
func (s *Single) Value(key string) string {
	if all := s.values(key); len(all) > 0 {
		return all[0]
	}
	return ""
}

func (s *Single) values(key string) []string {
	for _, t := range s.Settings {
		if t.Key == key {
			return t.Values
		}
	}
	return nil
}

// ReadsStdin reports whether the load reads changes from standard input.
func (s *Single) ReadsStdin() bool { return slices.Contains(s.From, "-") }

// Table returns the table of the load, which by default has the load's name.
func (s *Single) Table() string {
	return cmp.Or(s.Value(keyTable), s.Name)
}

func Read(path string, v *Vocabulary) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read job: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read job: %w", err)
	}
	return Parse(path, text, v)
}

// Parse parses the text of a job file. The error is an *Error.
func Parse(path string, text []byte, v *Vocabulary) (*File, error) {
	d := &document{name: path}
	if len(text) > maxFileBytes {
		return nil, d.errorf(0, "larger than %d bytes; is it a job file?", maxFileBytes)
	}
	root, err := d.root(text)
	if err != nil {
		return nil, err
	}
	top, err := d.entries(root, "a job")
	if err != nil {
		return nil, err
	}
	known := []string{"version", "target", "defaults", "loads", "parallel"}
	parts := map[string]*yaml.Node{}
	for _, e := range top {
		if !slices.Contains(known, e.name) {
			return nil, d.errorf(e.line, "unknown key %s; a job has %s%s", quoted(e.name), strings.Join(known, ", "),
				suggest.Hint(e.name, known))
		}
		parts[e.name] = e.value
	}
	file := &File{Path: path}
	switch version := parts["version"]; {
	case version == nil:
		return nil, d.errorf(1, "version is missing; want version: %d", Version)
	case version.Value != fmt.Sprint(Version):
		return nil, d.errorf(version.Line, "version %s; this tsimport reads version %d", quoted(version.Value), Version)
	case parts["loads"] == nil:
		return nil, d.errorf(1, "loads are missing; want at least one (docs/jobs.md)")
	}
	if n := parts["parallel"]; n != nil {
		if file.Parallel, err = d.parallel(n); err != nil {
			return nil, err
		}
	}
	r := &fileReader{document: d, vocabulary: v}
	for _, part := range []string{"target", "defaults"} {
		if n := parts[part]; n != nil {
			if err := r.share(part, n); err != nil {
				return nil, err
			}
		}
	}
	file.Common = r.common
	file.Loads, err = r.loads(parts["loads"])
	return file, err
}

func (d *document) parallel(n *yaml.Node) (parallel int, err error) {
	text, err := d.scalar(entry{"parallel", n.Line, n}, &options.Option{Name: "parallel", Kind: options.Whole})
	if err == nil {
		if _, err = fmt.Sscan(text, &parallel); err != nil || parallel < 1 {
			err = d.errorf(n.Line, "parallel: want the number of loads to run at a time, 1 or more, not %s", quoted(text))
		}
	}
	return parallel, err
}

type fileReader struct {
	*document
	vocabulary *Vocabulary
	shared     []Setting // target and defaults
	common     []Setting // limits of the whole job
}

// share reads target or defaults, the settings that loads share.
func (r *fileReader) share(part string, n *yaml.Node) error {
	all, err := r.entries(n, part)
	if err != nil {
		return err
	}
	for _, e := range all {
		switch {
		case part == "target" && !slices.Contains(r.vocabulary.Target, e.name):
			return r.unknown(e, part, r.vocabulary.Target)
		case part == "defaults" && slices.Contains([]string{keyTable, keyFrom, keyAfter, keyExcept, keyCommand}, e.name):
			return r.errorf(e.line, "%s: not allowed in defaults; put it into each load", e.name)
		}
		if err := r.add(e); err != nil {
			return err
		}
	}
	return nil
}

func (r *fileReader) add(e entry) error {
	k := r.vocabulary.any(e.name)
	if k == nil {
		return r.unknown(e, "defaults", r.vocabulary.names(""))
	}
	if isNull(e.value) {
		return nil // a null sets nothing
	}
	s, err := r.setting(e, k)
	if err != nil {
		return err
	}
	to := &r.shared
	if k.Scope == options.OfJob || k.Scope == options.OfBoth {
		to = &r.common
	}
	if i := slices.IndexFunc(*to, func(t Setting) bool { return t.Key == s.Key }); i >= 0 {
		(*to)[i] = s
		return nil
	}
	*to = append(*to, s)
	return nil
}

func (r *fileReader) setting(e entry, k *options.Option) (s Setting, err error) {
	s = Setting{Key: k.Name, line: e.line}
	if s.Values, err = r.values(e, k); err != nil {
		return s, err
	}
	for _, v := range s.Values {
		if err := r.checkVariables(e.value.Line, k.Name, v); err != nil {
			return s, err
		}
	}
	return s, nil
}

// secretNames occur in keys that users may try, although job files cannot have access keys.
var secretNames = []string{"secret", "password", "token", "access-key", "access_key", "accesskey", "credential"}

func (r *fileReader) unknown(e entry, what string, names []string) error {
	if why, ok := r.vocabulary.Refused[e.name]; ok {
		return r.errorf(e.line, "%s: %s", e.name, why)
	}
	lower := strings.ToLower(e.name)
	if slices.ContainsFunc(secretNames, func(s string) bool { return strings.Contains(lower, s) }) &&
		len(suggest.Nearest(e.name, names)) == 0 {
		return r.errorf(e.line, "%s: a job file cannot have access keys; set TABLESTORE_ACCESS_KEY_ID and "+
			"TABLESTORE_ACCESS_KEY_SECRET, or name a profile", quoted(e.name))
	}
	return r.errorf(e.line, "unknown key %s in %s; keys are the names of flags%s", quoted(e.name), what,
		suggest.Hint(e.name, names))
}

func (r *fileReader) loads(n *yaml.Node) (all []Single, err error) {
	entries, err := r.entries(n, "loads")
	switch {
	case err != nil:
		return nil, err
	case len(entries) == 0:
		return nil, r.errorf(n.Line, "loads is empty; want at least one load")
	case len(entries) > mostLoads:
		return nil, r.errorf(n.Line, "%d loads; a job has at most %d", len(entries), mostLoads)
	}
	for _, e := range entries {
		l, err := r.load(e)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// load reads one load, merged with target and defaults.
func (r *fileReader) load(e entry) (l Single, err error) {
	l = Single{Name: e.name, Command: Load, line: e.line}
	if err := r.checkName(l.Name, e.line); err != nil {
		return l, err
	}
	all, err := r.entries(e.value, "load "+e.name)
	if err != nil {
		return l, err
	}
	if i := slices.IndexFunc(all, func(e entry) bool { return e.name == keyCommand }); i >= 0 {
		if l.Command, err = r.scalar(all[i], &options.Option{Name: keyCommand}); err != nil {
			return l, err
		}
		if _, ok := r.vocabulary.Commands[l.Command]; !ok {
			return l, r.errorf(all[i].value.Line, "command %s: want %s%s", quoted(l.Command), strings.Join(commands, ", "),
				suggest.Hint(l.Command, commands))
		}
	}
	own := map[string]bool{}
	for _, e := range all {
		own[e.name] = true
	}
	for _, s := range r.shared {
		if r.vocabulary.key(l.Command, s.Key) != nil && !own[s.Key] {
			l.Settings = append(l.Settings, s)
		}
	}
	for _, e := range all {
		if err := r.loadKey(&l, e); err != nil {
			return l, err
		}
	}
	switch {
	case l.Command == Export && len(l.From) > 0:
		return l, r.errorf(l.line, "load %s: an export reads its table; it has no from", l.Name)
	case l.Command == Export && (l.Value("output") == "" || l.Value("output") == "-"):
		return l, r.errorf(l.line, "load %s: output is missing; name the file or folder to write", l.Name)
	case l.Command != Export && len(l.From) == 0:
		return l, r.errorf(l.line, "load %s: from is missing; name the inputs to read", l.Name)
	case l.Command == Copy && len(l.From) != 1:
		return l, r.errorf(l.line, "load %s: from: a copy reads one table", l.Name)
	case len(l.except) > 0 && placeholder.FindString(l.Name) == "":
		return l, r.errorf(l.line, "load %s: except: the name has no variable part such as {table}", l.Name)
	case l.ReadsStdin() && (l.Command != Load || l.Value("mode") != "changes" || len(l.From) > 1):
		return l, r.errorf(l.line, "load %s: from: standard input cannot be read again when the job is resumed; name a "+
			"file, or read only changes from it (mode: changes)", l.Name)
	}
	return l, nil
}

func (r *fileReader) loadKey(l *Single, e entry) error {
	switch e.name {
	case keyCommand:
		return nil
	case keyFrom, keyAfter, keyExcept:
		if isNull(e.value) {
			return nil
		}
		s, err := r.setting(e, &options.Option{Name: e.name, Kind: options.Texts})
		switch e.name {
		case keyFrom:
			l.From = s.Values
		case keyAfter:
			l.After = s.Values
		default:
			l.except = s.Values
		}
		return err
	}
	k := r.vocabulary.key(l.Command, e.name)
	if k == nil {
		if r.vocabulary.any(e.name) != nil {
			return r.errorf(e.line, "%s: tsimport %s has no flag --%s", e.name, l.Command, e.name)
		}
		return r.unknown(e, "load "+l.Name, append(r.vocabulary.names(l.Command), keyFrom, keyAfter, keyExcept, keyCommand))
	}
	if k.Scope == options.OfJob {
		return r.errorf(e.line, "%s: applies to the whole job; put it into defaults", e.name)
	}
	if isNull(e.value) {
		return nil // a null unsets the default
	}
	s, err := r.setting(e, k)
	if err != nil {
		return err
	}
	l.Settings = append(l.Settings, s)
	return nil
}
