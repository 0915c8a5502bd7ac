package reader

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"example.com/tsimport/reader/csv"
)

// Kinds of CSV fields.
const (
	likeNothing = iota // empty, or a common text for null
	likeText
	likeInteger
	likeDecimal
	likeDate
)

var (
	integers = regexp.MustCompile(`^[+-]?[0-9]+$`)
	decimals = regexp.MustCompile(`^[+-]?[0-9]*[.,][0-9]+([eE][+-]?[0-9]+)?$`)
	dates    = regexp.MustCompile(
		`^([0-9]{4}[-/][0-9]{1,2}[-/][0-9]{1,2}|[0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{4})([ T][0-9]{1,2}:.*)?$`)
)

func likeness(text []byte) int {
	switch {
	case len(text) == 0, slices.Contains([]string{"NULL", `\N`, "NA"}, string(text)):
		return likeNothing
	case integers.Match(text):
		return likeInteger
	case decimals.Match(text):
		return likeDecimal
	case dates.Match(text):
		return likeDate
	}
	return likeText
}

// lookedAt is the number of records after the header to examine.
const lookedAt = 1000

// lookAtRecords checks the header and the dialect by means of the first records.
func (s *csvText) lookAtRecords(p *csv.Parser, text []byte, names []string) {
	columns, gaps := make([]int, len(names)), make([]bool, len(names))
	doubtful := slices.ContainsFunc(names, func(name string) bool { return likeness([]byte(name)) != likeText })
	blank := slices.ContainsFunc(names, func(name string) bool { return s.blankQuote([]byte(name), true) })
	for range lookedAt {
		rec, ok := p.Next()
		if !ok {
			break
		}
		for _, f := range rec.Fields {
			blank = blank || rec.Bad == nil && !f.Quoted && s.blankQuote(f.Bytes, len(rec.Fields) == len(names))
		}
		if !doubtful || rec.Bad != nil || len(rec.Fields) != len(names) || s.seamAt(text, rec) != nil {
			continue
		}
		for i, f := range rec.Fields {
			switch like := likeness(f.Bytes); {
			case like == likeNothing:
				gaps[i] = true
			case columns[i] == likeNothing, columns[i] == likeInteger && like == likeDecimal:
				columns[i] = like
			case columns[i] != like && (columns[i] != likeDecimal || like != likeInteger):
				columns[i] = likeText
			}
		}
	}
	if blank {
		s.Hint = fmt.Sprintf("fields of %s have blanks before their quotes, read as text: --trim drops them", s.Name)
		s.Notes = append(s.Notes, s.Hint)
	}
	if doubtful {
		s.doubtHeader(names, columns, gaps)
	}
}

// blankQuote reports whether blanks precede a field's quote. whole means that no delimiter can have split the field.
func (s *csvText) blankQuote(text []byte, whole bool) bool {
	bare, q := bytes.Trim(text, " \t"), s.Dialect.Quote
	return q != 0 && len(bare) > 1 && bare[0] == q && text[0] != q && (!whole || bare[len(bare)-1] == q)
}

// doubtHeader adds a note if the first record may be data, because a name looks like a value of its column. It must be
// data if a name is also implausible and the names of all non-text columns look like their values.
func (s *csvText) doubtHeader(names []string, columns []int, gaps []bool) {
	years, rising := namedByNumbers(names)
	suspect, gap, odd, all := "", false, false, true
	seen := make(map[string]bool, len(names))
	for i, name := range names {
		like := likeness([]byte(name))
		number := like == likeInteger && !years || like == likeDecimal
		same := number && (columns[i] == likeInteger || columns[i] == likeDecimal) || like == likeDate &&
			columns[i] == likeDate
		if same {
			suspect = name
		}
		gap = gap || like == likeNothing && gaps[i]
		odd = odd || like == likeNothing || like == likeDate || like == likeDecimal || seen[name]
		seen[name] = true
		all = all && (same || columns[i] == likeText || columns[i] == likeNothing)
	}
	text := fmt.Sprintf("the first line may be data, not a header: %q looks like a value of its column", suspect)
	switch {
	case suspect == "" && !gap, rising && !all && !gap:
		return
	case suspect != "" && odd && all && !rising:
		s.Doubt = text
	}
	s.Notes = append(s.Notes, fmt.Sprintf("%s: %s; then give --no-header", s.Name, text))
}

// namedByNumbers reports whether integers are plausible as names: because they are years, or because they rise.
func namedByNumbers(names []string) (years, rise bool) {
	last, count := 0, 0
	years, rise = true, true
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			years, rise = years && n >= 1900 && n <= 2100, rise && (count == 0 || n > last)
			last, count = n, count+1
		}
	}
	return years, rise && count > 1
}
