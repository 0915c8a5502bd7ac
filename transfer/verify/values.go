package verify

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"unicode/utf8"

	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/internal/tablestore/scan"
)

// How much of the values of an example is shown.
const (
	shownColumns = 20
	shownBytes   = 60 // of a value
)

// shown are the cells of a row in words, by column, the newest version first.
type shown map[string][]string

// shownRow shows a row of the table; nil if there is none.
func shownRow(r *scan.Row) shown {
	if r == nil {
		return nil
	}
	s := shown{}
	for _, c := range r.Columns {
		s[c.ColumnName] = append(s[c.ColumnName], showValue(c.Value)+at(c.Timestamp))
	}
	return s
}

// addView adds a cell of an expected row. One that is deleted is none.
func (s shown) addView(c plainbuffer.View) {
	name := string(c.Name)
	if v := client.SDKValue(c.Value); v != nil {
		s[name] = append(s[name], showValue(v)+at(c.Timestamp))
	} else {
		s[name] = []string{}
	}
}

// at shows the time of a cell, if it is given.
func at(ms int64) string {
	if ms < 0 {
		return ""
	}
	return " at " + strconv.FormatInt(ms, 10)
}

// showValue shows a value so that its type can be seen, and no more of it than fits on a line.
func showValue(v any) string {
	switch v := v.(type) {
	case string:
		if len(v) > shownBytes {
			end := shownBytes
			for end > 0 && !utf8.RuneStart(v[end]) {
				end--
			}
			return fmt.Sprintf("%q… (%d bytes)", v[:end], len(v))
		}
		return strconv.Quote(v)
	case []byte:
		if len(v) > shownBytes/2 {
			return fmt.Sprintf("0x%s… (%d bytes)", hex.EncodeToString(v[:shownBytes/2]), len(v))
		}
		return "0x" + hex.EncodeToString(v)
	case float64:
		text := strconv.FormatFloat(v, 'g', -1, 64)
		if _, err := strconv.ParseInt(text, 10, 64); err == nil {
			text += ".0" // not an integer
		}
		return text
	}
	return fmt.Sprint(v)
}

// values enters the values of the columns that differ. Of updates, whose other cells are those of other records, only those that the record has.
func (e *Example) values(given shown, whole bool) {
	for _, name := range e.Columns[:min(len(e.Columns), shownColumns)] {
		input, has := given[name]
		if !has && !whole {
			continue
		}
		e.Values = append(e.Values, Values{name, append([]string{}, input...), append([]string{}, e.stored[name]...)})
	}
}
