package job

import (
	"fmt"
	"slices"
	"strings"

	"example.com/tsimport/internal/suggest"
)

// Check refuses loads that cannot run in one job, and serializes loads into the same table. Call Expand first.
func (f *File) Check() error {
	fail := func(l *Single, format string, a ...any) error {
		return &Error{f.Path, l.line, fmt.Sprintf("load %s: ", l.Name) + fmt.Sprintf(format, a...)}
	}
	byName := map[string]*Single{} // in lower case: some file systems ignore case
	var names []string
	for i := range f.Loads {
		l := &f.Loads[i]
		lower := strings.ToLower(l.Name)
		switch other := byName[lower]; {
		case other != nil && other.Name == l.Name:
			return fail(l, "two loads have this name, in lines %d and %d; rename one, and name its table with table",
				other.line, l.line)
		case other != nil:
			return fail(l, "load %s differs only in case, and some file systems would give both one run folder", other.Name)
		case slices.Contains(reserved, lower):
			return fail(l, "the job's folder has a file of this name; choose another, and name the table with table")
		}
		byName[lower] = l
		names = append(names, l.Name)
	}
	for _, l := range f.Loads {
		for _, name := range l.After {
			if !slices.Contains(names, name) {
				return fail(&l, "after: there is no load %s%s", quoted(name), suggest.Hint(name, names))
			}
		}
	}
	if err := f.checkTables(fail); err != nil {
		return err
	}
	if err := f.checkCycles(fail); err != nil {
		return err
	}
	f.orderWrites() // adds no cycle
	return f.joinStdin(fail)
}

// joinStdin makes all loads that read standard input begin together: each gets the predecessors of all.
func (f *File) joinStdin(fail func(*Single, string, ...any) error) error {
	var readers []*Single
	var after []string
	for i := range f.Loads {
		if l := &f.Loads[i]; l.ReadsStdin() {
			readers, after = append(readers, l), append(after, l.After...)
		}
	}
	slices.Sort(after)
	before := func(name string) []string { return f.byName()[name].After }
	for _, l := range readers {
		if i := slices.IndexFunc(readers, func(o *Single) bool { return l != o && follows(before, l.Name, o.Name) }); i >= 0 {
			return fail(l, "it shares standard input with load %s, so it cannot run after that load, as after or a "+
				"common table requires", readers[i].Name)
		}
		l.After = slices.Compact(slices.Clone(after))
	}
	if len(readers) > max(1, f.Parallel) {
		return fail(readers[0], "%d loads read standard input concurrently; set parallel: %[1]d, or more", len(readers))
	}
	return nil
}

func (f *File) byName() map[string]*Single {
	all := map[string]*Single{}
	for i := range f.Loads {
		all[f.Loads[i].Name] = &f.Loads[i]
	}
	return all
}

// place identifies the output of a load, as far as the file names it.
func (s *Single) place() string {
	if s.Command == Export {
		return "file " + s.Value("output")
	}
	at := s.Table()
	if !strings.Contains(at, "://") {
		for _, key := range []string{"endpoint", "instance", "store", "profile"} {
			at += "\x00" + s.Value(key)
		}
	}
	return at
}

// checkTables refuses loads into one table with different keys, and exports to the same file.
func (f *File) checkTables(fail func(*Single, string, ...any) error) error {
	first := map[string]*Single{}
	for i := range f.Loads {
		l := &f.Loads[i]
		other := first[l.place()]
		if other == nil {
			first[l.place()] = l
			continue
		}
		if l.Command == Export {
			return fail(l, "load %s also writes the output %s", other.Name, l.Value("output"))
		}
		if a, b := other.values("pk"), l.values("pk"); len(a) > 0 && len(b) > 0 && !slices.Equal(a, b) {
			return fail(l, "table %s has the key %s here, and %s in load %s; loads into one table must have the same key",
				l.Table(), strings.Join(b, ", "), strings.Join(a, ", "), other.Name)
		}
	}
	return nil
}

// orderWrites makes each load run after earlier loads of the file that write to its table, unless they run after it.
func (f *File) orderWrites() {
	byName, into := f.byName(), map[string][]*Single{}
	for i := range f.Loads {
		l := &f.Loads[i]
		if l.Command == Export {
			continue
		}
		place := l.place()
		for _, o := range into[place] {
			if !follows(func(name string) []string { return byName[name].After }, o.Name, l.Name) &&
				!slices.Contains(l.After, o.Name) {
				l.After = append(slices.Clone(l.After), o.Name)
			}
		}
		into[place] = append(into[place], l)
	}
}

// ComesAfter reports whether a load runs after another one, directly or indirectly.
func (r *Record) ComesAfter(name, before string) bool {
	return follows(func(name string) []string {
		return r.Loads[slices.IndexFunc(r.Loads, func(s *State) bool { return s.Name == name })].After
	}, name, before)
}

// follows reports whether a load comes after another. all returns the direct predecessors of a load.
func follows(all func(name string) []string, name, after string) bool {
	seen := map[string]bool{}
	var reaches func(string) bool
	reaches = func(n string) bool {
		if n == after {
			return true
		}
		if seen[n] {
			return false
		}
		seen[n] = true
		return slices.ContainsFunc(all(n), reaches)
	}
	return reaches(name)
}

func (f *File) checkCycles(fail func(*Single, string, ...any) error) error {
	const onPath, done = 1, 2
	marks := map[string]int{}
	var path []string
	byName := f.byName()
	var visit func(l *Single) error
	visit = func(l *Single) error {
		switch marks[l.Name] {
		case done:
			return nil
		case onPath:
			cycle := append(path[slices.Index(path, l.Name):], l.Name)
			return fail(l, "after: the loads wait for each other: %s", strings.Join(cycle, " after "))
		}
		marks[l.Name] = onPath
		path = append(path, l.Name)
		for _, name := range l.After {
			if err := visit(byName[name]); err != nil {
				return err
			}
		}
		path = path[:len(path)-1]
		marks[l.Name] = done
		return nil
	}
	for i := range f.Loads {
		if err := visit(&f.Loads[i]); err != nil {
			return err
		}
	}
	return nil
}

// Select keeps the named loads, and loads made from a named load of before. It does not add their predecessors.
func (f *File) Select(names []string, before *File) error {
	if len(names) == 0 {
		return nil
	}
	var all []string
	for _, l := range f.Loads {
		all = append(all, l.Name)
	}
	keep, expanded := map[string]bool{}, before.byName()
	for _, name := range names {
		hit := false
		for _, l := range f.Loads {
			if b := expanded[name]; l.Name == name || b != nil && l.line == b.line {
				keep[l.Name], hit = true, true
			}
		}
		if !hit {
			return &Error{f.Path, 0, fmt.Sprintf("there is no load %s%s", quoted(name), suggest.Hint(name, all))}
		}
	}
	f.Loads = slices.DeleteFunc(f.Loads, func(l Single) bool { return !keep[l.Name] })
	for i := range f.Loads {
		f.Loads[i].After = slices.DeleteFunc(f.Loads[i].After, func(n string) bool { return !keep[n] })
	}
	return nil
}
