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

// Limits of the values shown in an example.
const (
	shownColumns = 20
	shownBytes   = 60 // maximum bytes of a value
)

// shown maps columns to the cells of a row as text, newest first.
type shown map[string][]string

// shownRow formats a row of the table. It returns nil if r is nil.
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

// addView adds a cell of an expected row. A deleted cell adds its column without a value.
func (s shown) addView(c plainbuffer.View) {
	name := string(c.Name)
	if v := client.SDKValue(c.Value); v != nil {
		s[name] = append(s[name], showValue(v)+at(c.Timestamp))
	} else {
		s[name] = []string{}
	}
}

// at formats the timestamp of a cell. It returns "" for a negative one.
func at(ms int64) string {
	if ms < 0 {
		return ""
	}
	return " at " + strconv.FormatInt(ms, 10)
}

// showValue formats a value so that its type can be seen, shortened to fit on a line.
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

// values sets the values of the columns that differ. Unless whole is set, it leaves out columns that the record lacks.
func (e *Example) values(given shown, whole bool) {
	for _, name := range e.Columns[:min(len(e.Columns), shownColumns)] {
		input, has := given[name]
		if !has && !whole {
			continue
		}
		e.Values = append(e.Values, Values{name, append([]string{}, input...), append([]string{}, e.stored[name]...)})
	}
}
