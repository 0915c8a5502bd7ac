package reader

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"example.com/tsimport/reader/compress"
	"example.com/tsimport/reader/input"
)

// ErrEmpty is wrapped by errors about a source with neither records nor columns.
var ErrEmpty = errors.New("the file is empty")

// Skips returns a warning if err means that an empty file from a folder is skipped. Spark and Hive write such files.
func Skips(item input.Item, err error) (warning string, ok bool) {
	if !item.Found || !errors.Is(err, ErrEmpty) {
		return "", false
	}
	return item.Name + " is empty and is skipped", true
}

// Format is an input format. Everything specific to a format is in its value; no other code depends on which it is.
type Format interface {
	fmt.Stringer // the name for --format
	// Is reports whether an input's name and beginning prove that it has the format. head is decompressed and, if it is
	// text, UTF-8. A format that only --format, or the open of another format, selects returns false.
	Is(name string, head []byte) bool
	// open examines an input. It names the columns and sets how records are cut, parsed, described and kept.
	open(s *File) error
}

// Formats holds all formats. The last one that matches wins; CSV matches everything.
var Formats = []Format{CSV, JSONLines, Parquet, Arrow, DynamoDB, MongoDB, PGDump, MySQLDump, Debezium, Canal, Maxwell,
	DynamoDBExport}

// ParseFormat returns the format with a name. For auto it returns nil: the format is detected by content and name.
func ParseFormat(name string) (Format, error) {
	if strings.EqualFold(name, auto) {
		return nil, nil
	}
	for _, f := range Formats {
		if strings.EqualFold(f.String(), name) {
			return f, nil
		}
	}
	return nil, fmt.Errorf("format %q: want %s", name, strings.Join(FormatNames(), ", "))
}

const auto = "auto"

// FormatNames returns the names that ParseFormat accepts.
func FormatNames() []string {
	names := []string{auto}
	for _, f := range Formats {
		names = append(names, f.String())
	}
	return names
}

// rowFormat returns the row format of an input that begins with head, or nil if it has another kind of format.
func (s *File) rowFormat(head []byte) *RowFormat {
	if s.o.Format != nil {
		given, _ := s.o.Format.(*RowFormat)
		return given
	}
	for _, f := range slices.Backward(Formats) {
		if rows, ok := f.(*RowFormat); ok && rows.Begins(head) && (s.Compression == compress.None || rows.inOrder != nil) {
			return rows
		}
	}
	return nil
}

func (s *File) textFormat() Format {
	if s.o.Format != nil {
		return s.o.Format
	}
	head := s.utf8Head()
	for _, f := range slices.Backward(Formats) {
		if _, rows := f.(*RowFormat); !rows && f.Is(s.Name, head) {
			return f
		}
	}
	return CSV
}

// Extension returns an input's extension in lower case, without compression and query: ".csv" for
// "http://host/a/Orders.CSV.gz?version=2".
func Extension(name string) string {
	if _, rest, address := strings.Cut(name, "://"); address {
		name, _, _ = strings.Cut(rest, "?")
		name, _, _ = strings.Cut(name, "#")
	}
	return path.Ext(input.Unpacked(strings.ToLower(path.Base(filepath.ToSlash(name)))))
}

// nameColumns sets the column names. An empty name is replaced by the column's position, and a repeated name gets a
// number, so that no column hides another; Renamed reports both. Columns from folder names come last.
func (s *File) nameColumns(given []string) {
	taken, used := make(map[string]bool, len(given)), make(map[string]bool, len(given))
	for _, name := range given {
		used[name] = true
	}
	s.Columns = nil
	for i, name := range given {
		base := cmp.Or(name, fmt.Sprintf("c%d", i+1))
		unique := base
		for n := 2; taken[unique] || unique != name && used[unique]; n++ {
			unique = fmt.Sprintf("%s_%d", base, n)
		}
		if unique != name {
			s.Renamed = append(s.Renamed, fmt.Sprintf("%s: column %d, %q in the header, is named %q", s.Name, i+1, name, unique))
		}
		taken[unique] = true
		s.Columns = append(s.Columns, unique)
	}
	for _, c := range s.fixed {
		if taken[c.Name] {
			s.Notes = append(s.Notes, fmt.Sprintf("column %s comes from the folders of --path-columns; a record whose own "+
				"value differs is rejected", c.Name))
		}
		s.Columns = append(s.Columns, c.Name)
	}
}
