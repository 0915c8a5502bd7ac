package input

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// Column is a value that the name of a partition folder gives to every record below the folder.
type Column struct {
	Name  string
	Value string // "" when Null
	Null  bool
}

// hiveNull is the value of a null partition in folder names of Hive and Spark.
const hiveNull = "__HIVE_DEFAULT_PARTITION__"

// columns returns the columns from the k=v folders in a file's path, which is base/below with slashes. All of those in
// below count, but in base only those at its end, after the last other folder. So data/dt=*/x.csv gives the same
// columns whether the shell or Expand matches it, and a k=v folder above the data gives none.
func (e *expander) columns(name, base, below string) ([]Column, error) {
	if !e.options.PathColumns {
		return nil, nil
	}
	var folders []string
	above := strings.Split(strings.TrimRight(base, "/"), "/")
	for _, folder := range slices.Backward(above) {
		if _, ok := partition(folder); !ok {
			break
		}
		folders = append(folders, folder)
	}
	slices.Reverse(folders)
	parts := strings.Split(below, "/")
	folders = append(folders, parts[:len(parts)-1]...)

	var columns []Column
	for _, folder := range folders {
		c, ok := partition(folder)
		if !ok {
			continue
		}
		if slices.ContainsFunc(columns, func(d Column) bool { return d.Name == c.Name }) {
			return nil, fmt.Errorf("take columns from the path of %s: two folders give %s; rename one of them", name, c.Name)
		}
		if !utf8.ValidString(c.Name) || !utf8.ValidString(c.Value) {
			return nil, fmt.Errorf("take columns from the path of %s: folder %q is not UTF-8; rename it", name, folder)
		}
		columns = append(columns, c)
	}
	return columns, nil
}

// partition parses the name of a partition folder.
func partition(folder string) (Column, bool) {
	key, value, ok := strings.Cut(folder, "=")
	if !ok || key == "" {
		return Column{}, false
	}
	if value == hiveNull {
		return Column{Name: unescape(key), Null: true}, true
	}
	return Column{Name: unescape(key), Value: unescape(value)}, true
}

// unescape decodes Hive's %XX. As in Hive, a % that does not begin a valid escape stands for itself.
func unescape(s string) string {
	if t, err := url.PathUnescape(s); err == nil {
		return t
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if i+3 <= len(s) {
			if t, err := url.PathUnescape(s[i : i+3]); err == nil && s[i] == '%' {
				b.WriteString(t)
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
