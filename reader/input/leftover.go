package input

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Programs leave files beside those that they write: earlier versions, and parts that are not whole yet. Read with the others
// they would come after them, and their rows would win.

var (
	backups   = []string{"~", ".bak", ".orig", ".swp"}
	transfers = []string{".tmp", ".part", ".partial", ".crdownload", ".filepart", "._copying_", ".inprogress"}
	locks     = []string{"~$", ".~lock."} // of office programs, which begin so
)

// packedEndings are those of compressed files.
var packedEndings = []string{".gz", ".zst", ".bz2", ".xz", ".lz4", ".sz", ".snappy", ".lzma", ".lz"}

// Unpacked is a name without the endings of compression.
func Unpacked(name string) string {
	for _, packed := range packedEndings {
		if n := len(name) - len(packed); n > 0 && strings.EqualFold(name[n:], packed) {
			name = name[:n]
		}
	}
	return name
}

// leftover returns by which mark a name is that of a leftover, "" if it is not one, and whether what it belongs to may not be whole yet.
func leftover(name string) (mark string, transfer bool) {
	name = strings.ToLower(path.Base(filepath.ToSlash(name)))
	for _, text := range []string{name, Unpacked(name)} {
		for i, ending := range slices.Concat(transfers, backups) {
			if strings.HasSuffix(text, ending) {
				return ending, i < len(transfers)
			}
		}
	}
	for _, begin := range locks {
		if strings.HasPrefix(name, begin) {
			return begin, false
		}
	}
	return "", false
}

// spells reports whether the last part of a glob has the mark of leftovers, also as one of the ways in its last braces.
func spells(pattern, mark string) bool {
	last := strings.ToLower(pattern[strings.LastIndex(pattern, "/")+1:])
	if slices.Contains(locks, mark) {
		return strings.HasPrefix(last, mark)
	}
	ends := []string{last}
	if begin, ways, braces := strings.Cut(strings.TrimSuffix(last, "}"), "{"); braces && strings.HasSuffix(last, "}") {
		ends = nil
		for way := range strings.SplitSeq(ways, ",") {
			ends = append(ends, begin+way)
		}
	}
	return slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(Unpacked(end), mark) })
}

// isLeftover reports whether a file that nobody named is a leftover that the glob, "" for none, does not ask for, and notes it.
func (e *expander) isLeftover(name, pattern string) bool {
	mark, transfer := leftover(name)
	if mark == "" || spells(pattern, mark) || slices.ContainsFunc(e.Extensions, func(x string) bool { return strings.EqualFold(x, mark) }) {
		return false
	}
	e.met = true
	if !e.leftSeen[name] {
		e.leftSeen[name] = true
		e.left = append(e.left, name)
		e.unfinished = e.unfinished || transfer
	}
	return true
}

// leftText says which leftovers are skipped.
func (e *expander) leftText() string {
	files := "1 file whose name is"
	if n := len(e.left); n > 1 {
		files = fmt.Sprintf("%d files whose names are", n)
	}
	return fmt.Sprintf("%s of unfinished or replaced files: %s", files, someOf(e.left))
}

// warnOfCopies warns of inputs that are in one folder both compressed and not, or compressed in two ways.
func (e *expander) warnOfCopies() {
	first := map[string]string{}
	var pairs []string
	for i := range e.set.Items {
		name := e.set.Items[i].Name
		plain := Unpacked(name)
		if strings.HasPrefix(name, "http") && strings.Contains(name, "://") {
			continue // an address need not say what it gives
		}
		if other := first[plain]; other != "" {
			pairs = append(pairs, other+" and "+name)
			continue
		}
		first[plain] = name
	}
	if len(pairs) > 0 {
		e.warn("%s seem to be the same file, compressed and not, or compressed in two ways; both are read: leave one out if they are", someOf(pairs))
	}
}
