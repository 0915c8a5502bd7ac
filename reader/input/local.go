package input

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"
)

// metaBytes are the bytes that make a name a glob. In a glob, a backslash escapes the next byte.
const metaBytes = `*?[{\`

// local adds the files that a path or glob names, in the working directory or, if there are none, in dir.
func (e *expander) local(ctx context.Context, arg, dir string) error {
	found, err := e.localIn(ctx, arg, arg)
	if !found && err == nil && dir != "" && !filepath.IsAbs(arg) {
		escaped := metaEscaper.Replace(dir)
		found, err = e.localIn(ctx, filepath.Join(dir, arg), escaped+"/"+arg)
	}
	switch {
	case err != nil || found:
		return err
	case strings.ContainsAny(arg, metaBytes):
		return &missing{fmt.Sprintf("open input %s: no file has this name, and as a glob it matches none; check the name "+
			"(hidden files are left out%s)", arg, e.alsoSkipped(", and so is ")), true}
	default:
		return &missing{fmt.Sprintf("open input %s: there is no such file or folder; check the name", arg), false}
	}
}

// localIn adds the file or folder with a name, or the files that match pattern. It reports whether there are any.
func (e *expander) localIn(ctx context.Context, name, pattern string) (found bool, err error) {
	info, err := os.Stat(name)
	if err == nil {
		if info.IsDir() {
			return true, e.namedFolder(ctx, name)
		}
		return true, e.file(name, info, filepath.Dir(name), filepath.Base(name))
	}
	if strings.ContainsAny(pattern, metaBytes) {
		return e.glob(ctx, pattern)
	}
	if errors.Is(err, fs.ErrNotExist) {
		if link, linkErr := os.Readlink(name); linkErr == nil {
			return true, &missing{fmt.Sprintf("open input %s: it is a link to %s, which does not exist", name, link), false}
		}
		return false, nil
	}
	return true, fmt.Errorf("open input %s: %w", name, bare(err))
}

func (e *expander) namedFolder(ctx context.Context, name string) error {
	before, repeats := len(e.set.Items), len(e.repeats)
	if err := e.folder(ctx, name, name, ""); err != nil {
		return err
	}
	if len(e.set.Items) == before && len(e.repeats) == repeats {
		return &missing{fmt.Sprintf("read folder %s: there are no files in it that are not hidden%s%s; name another", name,
			e.extensions(), e.alsoSkipped("; skipped ")), true}
	}
	return nil
}

// alsoSkipped returns lead and the paths omitted as leftovers or because of NotData, or "" if there are none.
func (e *expander) alsoSkipped(lead string) string {
	if all := slices.Concat(e.skipped, e.passed.left, e.passed.dotted); len(all) > 0 {
		return lead + someOf(all)
	}
	return ""
}

// extensions returns the part of a message that names the extensions that files in a folder must have.
func (e *expander) extensions() string {
	if len(e.options.Extensions) == 0 {
		return ""
	}
	return " and end in " + strings.Join(e.options.Extensions, " or ")
}

// folder adds the files below a folder, whose path is base/below, in the order of names. The folder may be a link.
func (e *expander) folder(ctx context.Context, name, base, below string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return fmt.Errorf("read folder %s: %w", name, bare(err))
	}
	for _, entry := range entries {
		if hidden(entry.Name(), entry.IsDir()) {
			continue
		}
		child, childBelow := filepath.Join(name, entry.Name()), path.Join(below, entry.Name())
		if !e.isData(child, entry.IsDir()) || e.listsExport(child) {
			continue
		}
		if entry.IsDir() {
			err = e.folder(ctx, child, base, childBelow)
		} else {
			err = e.found(child, base, childBelow, "")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// found adds a file that no argument names. It skips links to folders, which may form cycles, and files such as pipes.
func (e *expander) found(name, base, below, pattern string) error {
	if !e.wanted(name) || e.isLeftover(name, pattern) {
		return nil
	}
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, syscall.ELOOP):
		e.unread("%s is a link that leads to itself, so there is nothing to read; it is left out", name)
		return nil
	case err != nil:
		return fmt.Errorf("open input %s: %w", name, bare(err))
	case info.IsDir():
		e.unread("%s is a link to a folder and is not followed; name it to read it", name)
		return nil
	case !info.Mode().IsRegular():
		e.unread("%s is not a regular file and is left out; name it to read it", name)
		return nil
	}
	before := len(e.set.Items)
	err = e.file(name, info, base, below)
	for i := before; i < len(e.set.Items); i++ {
		e.set.Items[i].Found = true
	}
	return err
}

// file adds a file. Its columns come from its path, which is base/below.
func (e *expander) file(name string, info fs.FileInfo, base, below string) error {
	if err := e.checkTable(name, base); err != nil {
		return err
	}
	columns, err := e.columns(name, filepath.ToSlash(base), below)
	if err != nil {
		return err
	}
	identity, err := filepath.Abs(name)
	if err != nil {
		return fmt.Errorf("open input %s: %w", name, err)
	}
	i := Item{Name: name, Size: -1, Columns: columns, src: &streamFile{name: name}}
	if info.Mode().IsRegular() {
		i.Size, i.Version = info.Size(), info.ModTime().UTC().Format("2006-01-02T15:04:05.999999999Z")
		i.Modified = info.ModTime()
		i.src = &localFile{name: name, size: info.Size(), modified: info.ModTime()}
	}
	e.add(i, identity)
	return nil
}

// glob adds the matches of a pattern. A folder stands for the files below it, as if the shell had expanded the pattern.
// ** does not follow links to folders. File-system errors are returned, because an unreadable folder may hold data.
func (e *expander) glob(ctx context.Context, pattern string) (found bool, err error) {
	options := []doublestar.GlobOption{doublestar.WithFailOnIOErrors(), doublestar.WithNoHidden()}
	deep := strings.Contains(pattern, "**")
	if deep {
		options = append(options, doublestar.WithNoFollow())
	}
	names, err := doublestar.FilepathGlob(pattern, options...)
	if errors.Is(err, doublestar.ErrBadPattern) {
		return true,
			&missing{fmt.Sprintf("open input %s: no file has this name, and it is not a valid glob; check its brackets, or "+
				"escape them with \\", pattern), false}
	}
	if err != nil {
		return true, fmt.Errorf("match %s: %w", pattern, err)
	}
	slices.SortFunc(names, func(a, b string) int { // by name, as in folder, so that the files of a folder stay together
		return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
	})
	base, _ := doublestar.SplitPattern(filepath.ToSlash(filepath.Clean(pattern)))
	before, repeats := len(e.set.Items), len(e.repeats)
	for _, name := range names {
		below, err := filepath.Rel(base, name)
		if err != nil {
			return true, fmt.Errorf("match %s: %w", pattern, err)
		}
		if err := e.matched(ctx, match{name: name, base: base, below: filepath.ToSlash(below), pattern: pattern, deep: deep,
			marks: spellsMark(pattern)}); err != nil {
			return true, err
		}
	}
	return len(e.set.Items) > before || len(e.repeats) > repeats, nil
}

type match struct {
	name, base, below string // the path is base/below; base ends before the glob's first special byte
	pattern           string
	deep              bool // whether the glob contains **
	marks             bool // whether the glob matches hidden names
}

func (e *expander) matched(ctx context.Context, m match) error {
	info, err := os.Lstat(m.name)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 && !m.deep {
		if info, err = os.Stat(m.name); errors.Is(err, syscall.ELOOP) {
			return e.found(m.name, m.base, m.below, m.pattern)
		}
	}
	if err != nil {
		return fmt.Errorf("open input %s: %w", m.name, bare(err))
	}
	if !m.marks && hiddenPath(m.below, info.IsDir()) || !e.isDataBelow(m.base, m.below, info.IsDir()) {
		return nil
	}
	if info.IsDir() {
		return e.folder(ctx, m.name, m.base, m.below)
	}
	saved := e.options.Extensions
	e.options.Extensions = nil // a glob already selects files
	defer func() { e.options.Extensions = saved }()
	return e.found(m.name, m.base, m.below, m.pattern)
}

// isDataBelow calls isData for each part of base/below after base, which ends before the glob's first special byte.
func (e *expander) isDataBelow(base, below string, folder bool) bool {
	parts := strings.Split(below, "/")
	name := filepath.FromSlash(base)
	for i, part := range parts {
		if name = filepath.Join(name, part); part != "." && !e.isData(name, folder || i < len(parts)-1) {
			return false
		}
	}
	return true
}

// hiddenPath reports whether a part of a path is hidden by a leading _. Globs omit names with a leading dot themselves.
func hiddenPath(below string, folder bool) bool {
	parts := strings.Split(below, "/")
	for i, part := range parts {
		if strings.HasPrefix(part, "_") && hidden(part, folder || i < len(parts)-1) {
			return true
		}
	}
	return false
}

// spellsMark reports whether a part of a glob begins with . or _.
func spellsMark(pattern string) bool {
	parts := strings.FieldsFunc(pattern, func(r rune) bool { return strings.ContainsRune("/{,[", r) })
	return slices.ContainsFunc(parts, func(part string) bool { return hidden(part, false) })
}

// metaEscaper turns a name into a glob that matches nothing else.
var metaEscaper = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`, `\`, `\\`)

// missing is an error about an input that does not exist.
type missing struct {
	text    string
	matches bool // whether the argument is a glob, folder or prefix, not the name of an input
}

func (m *missing) Error() string { return m.text }
func (m *missing) Is(target error) bool {
	return target == fs.ErrNotExist || m.matches && target == ErrNothing
}
