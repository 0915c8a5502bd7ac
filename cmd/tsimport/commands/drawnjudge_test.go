package commands_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Record is what a record of an input means.
type Record struct {
	File   string // the base name of its input, which names it in rejects with Number
	Number int
	Key    Cell
	Cells  map[string]Cell
	// Reject says that the record must be rejected: it is the seam of two files, say.
	Reject bool
}

// Row is a row of the table as the SDK returns it.
type Row struct {
	Key   any
	Cells map[string]any
}

// Judge reports how the rows differ from those that the records leave when they are written one after the other, each row replaced
// or, if update, merged. It returns an empty string if there is one form for each column in which they do not.
func Judge(records []Record, update bool, rows []Row) string {
	wrong := ""
	for _, f := range keyForms {
		why, whole := judge(records, update, rows, f)
		if why == "" {
			return ""
		}
		if wrong == "" || whole {
			wrong = why
		}
	}
	return wrong
}

// judge is Judge for one form of the key; whole says that the rows have the keys of the records.
func judge(records []Record, update bool, rows []Row, key form) (why string, whole bool) {
	wanted := make([]map[string]Cell, len(rows))
	for _, r := range records {
		i := slices.IndexFunc(rows, func(row Row) bool { return key.holds(r.Key, row.Key) })
		if i < 0 {
			return fmt.Sprintf("no row of record %d of %s, key %q", r.Number, r.File, spelled(r.Key)), false
		}
		if wanted[i] == nil || !update {
			wanted[i] = map[string]Cell{}
		}
		for name, c := range r.Cells {
			if c.Kind != Null {
				wanted[i][name] = c
			}
		}
	}
	names := map[string]bool{}
	for i, row := range rows {
		if wanted[i] == nil {
			return fmt.Sprintf("a row %v that no record is", row.Key), false
		}
		for name := range wanted[i] {
			names[name] = true
			if _, ok := row.Cells[name]; !ok {
				return fmt.Sprintf("row %v lacks %s", row.Key, name), true
			}
		}
		for name, v := range row.Cells {
			if _, ok := wanted[i][name]; !ok {
				return fmt.Sprintf("row %v has %s = %v, which no record gave it", row.Key, name, v), true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if tried := column(name, rows, wanted); tried != "" {
			return fmt.Sprintf("column %s has no one form: %s", name, tried), true
		}
	}
	return "", true
}

// column looks for the form of a column; if there is none, it returns the first value that contradicts each.
func column(name string, rows []Row, wanted []map[string]Cell) string {
	var tried []string
	for _, f := range forms {
		contradiction := ""
		for i, row := range rows {
			if c, ok := wanted[i][name]; ok && !f.holds(c, row.Cells[name]) {
				contradiction = fmt.Sprintf("row %v has %T %v for %+v, not %s", row.Key, row.Cells[name], row.Cells[name], c, f.name)
				break
			}
		}
		if contradiction == "" {
			return ""
		}
		tried = append(tried, contradiction)
	}
	return strings.Join(tried, "; ")
}
