package keyexpr

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// columnText is a column as an expression names it.
func columnText(name string) string {
	if identifier(name) {
		return name
	}
	return "col(" + strconv.Quote(name) + ")"
}

// pythonWords are not names of variables in Python, or are what formulas call.
var pythonWords = strings.Fields(`False None True and as assert async await break class continue def del elif else except finally for from global
	if import in is lambda nonlocal not or pass raise return try while with yield
	row str int abs len open dict format repr isinstance float hashlib struct zlib math mmh3 xxhash csv double codes time_of moment
	Decimal datetime timedelta timezone ZoneInfo`)

// pythonName is a column as a reader's variable.
func pythonName(name string) string {
	if identifier(name) && !strings.Contains(name, "$") && !slices.Contains(pythonWords, name) {
		return name
	}
	return "row[" + strconv.Quote(name) + "]"
}

// words of the expression language that look like names.
var words = map[string]bool{"in": true, "or": true, "and": true, "not": true, "matches": true, "contains": true, "startsWith": true,
	"endsWith": true, "let": true, "true": true, "false": true, "nil": true, "if": true, "else": true}

func identifier(name string) bool {
	for i, r := range name {
		if r != '_' && r != '$' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
			return false
		}
	}
	return name != "" && !words[name] && name != "$env"
}

// nearest returns the name with the fewest changed letters, or none if all are far.
func nearest(name string, names []string) string {
	best, most := "", min(3, max(1, utf8.RuneCountInString(name)/2))+1
	for _, other := range names {
		if strings.EqualFold(name, other) {
			return other
		}
		if d := distance(name, other); d < most {
			best, most = other, d
		}
	}
	return best
}

// distance counts the letters to insert, delete or replace; long names are not worth the time.
func distance(from, to string) int {
	a, b := []rune(strings.ToLower(from)), []rune(strings.ToLower(to))
	if len(a) > 64 || len(b) > 64 {
		return 1 << 20
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
