package keyexpr

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
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
