package input

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Programs leave unfinished files, earlier versions and locks beside their files. These must not be loaded.
var (
	transfers = []string{".tmp", ".part", ".partial", ".crdownload", ".filepart", "._copying_", ".inprogress"}
	leftovers = append(transfers[:len(transfers):len(transfers)], "~", ".bak", ".orig", ".swp")
	locks     = []string{"~$", ".~lock."} // prefixes of file names
)

// Unpacked returns a name without its compression extensions.
func Unpacked(name string) string {
	for _, packed := range []string{".gz", ".zst", ".bz2", ".xz", ".lz4", ".sz", ".snappy", ".lzma", ".lz"} {
		if n := len(name) - len(packed); n > 0 && strings.EqualFold(name[n:], packed) {
			name = name[:n]
		}
	}
	return name
}

// isLeftover reports whether a file is a leftover, unless pattern spells out its mark, and records leftovers.
func (e *expander) isLeftover(name, pattern string) bool {
	base := strings.ToLower(path.Base(filepath.ToSlash(name)))
	i := slices.IndexFunc(leftovers,
		func(end string) bool { return strings.HasSuffix(base, end) || strings.HasSuffix(Unpacked(base), end) })
	lock := slices.IndexFunc(locks, func(begin string) bool { return strings.HasPrefix(base, begin) })
	ways := strings.FieldsFunc(strings.ToLower(path.Base(pattern)),
		func(r rune) bool { return strings.ContainsRune("{,}", r) })
	asked := slices.ContainsFunc(ways, func(way string) bool {
		return i >= 0 && strings.HasSuffix("."+Unpacked(way), leftovers[i]) || lock >= 0 &&
			strings.HasPrefix(way, locks[lock])
	})
	if i < 0 && lock < 0 || asked || i >= 0 && slices.Contains(e.options.Extensions, leftovers[i]) {
		return false
	}
	e.passed.met = true
	if !slices.Contains(e.passed.left, name) {
		e.passed.left = append(e.passed.left, name)
		e.passed.unfinished = e.passed.unfinished || i >= 0 && i < len(transfers)
	}
	return true
}

func (e *expander) warnOfCopies() {
	first := map[string]string{}
	var pairs []string
	for i := range e.set.Items {
		name := e.set.Items[i].Name
		if other := first[Unpacked(name)]; other != "" {
			pairs = append(pairs, other+" and "+name)
		}
		first[Unpacked(name)] = name
	}
	if len(pairs) > 0 {
		e.warn("%s seem to be the same file, compressed and not, or compressed in two ways; both are read: leave one out "+
			"if they are", someOf(pairs))
	}
}
