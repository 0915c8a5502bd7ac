package keyexpr

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"example.com/tsimport/internal/table"
)

// noPython stands for a missing Python formula; formulas that contain it are left out.
const noPython = "…"

// textPython returns the formula of a node's text.
func textPython(n *node) string {
	switch n.typ {
	case table.String:
		return n.python
	case table.Integer:
		return "str(" + n.python + ")"
	case table.Boolean:
		return `("true" if ` + n.python + ` else "false")`
	case table.Double:
		return "double(" + n.python + ")"
	case table.Binary:
		return n.python + ".decode()"
	}
	return noPython // the formula depends on the type, which varies by row
}

// bytesPython returns the formula of a hash's input.
func bytesPython(n *node) string {
	if n.typ == table.Binary {
		return n.python
	}
	return textPython(n) + ".encode()"
}

// remainderPython returns the formula of the expression language's x % k, which has the sign of x.
func remainderPython(l, r *node) string {
	switch {
	case l.typ == table.Integer && r.typ == table.Integer && r.constant != nil && r.constant.Int > 0:
		return fmt.Sprintf("(abs(%s) %% %s * (1 if %s >= 0 else -1))", l.python, r.python, l.python)
	case l.typ == table.Integer && r.typ == table.Integer:
		return fmt.Sprintf("(abs(%s) %% abs(%s) * (1 if %s >= 0 else -1))", l.python, r.python, l.python)
	case number(l.typ) && number(r.typ):
		return fmt.Sprintf("math.fmod(%s, %s)", l.python, r.python)
	}
	return noPython
}

// pythonNeeds lists the lines of Python that formulas with certain calls need before them.
var pythonNeeds = []struct{ call, line string }{
	{"hashlib.", "import hashlib"}, {"struct.", "import struct"}, {"zlib.", "import zlib"}, {"math.", "import math"},
	{"mmh3.", "import mmh3  # pip install mmh3"}, {"xxhash.", "import xxhash  # pip install xxhash"},
	{"double(", "from decimal import Decimal"},
	{"double(",
		`double = lambda x: repr(x) if x and not 1e-7 <= abs(x) < 1e21 else format(Decimal(repr(x)).normalize(), "f")`},
	{"codes(", "import csv"},
	{"codes(",
		`codes = lambda name: dict(csv.reader(open(name, encoding="utf-8-sig", newline="")))  # once for each file`},
	{"time_of(", "from datetime import datetime, timedelta, timezone"}, {"time_of(", "from zoneinfo import ZoneInfo"},
	{"time_of(",
		`moment = lambda x, unit: datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=x * 1000000 // unit) if isinstance(x, int) else datetime.fromisoformat(x)`},
	{"time_of(",
		`time_of = lambda x, zone, unit=1: (lambda t: (t if t.tzinfo else t.replace(tzinfo=ZoneInfo(zone))).astimezone(ZoneInfo(zone)))(moment(x, unit))`},
}

func pythonSetup(key []KeyColumn) (lines []string) {
	all := ""
	for _, k := range key {
		all += k.Python + "\n"
	}
	for _, need := range pythonNeeds {
		if strings.Contains(all, need.call) {
			lines = append(lines, need.line)
		}
	}
	return lines
}

// columnText returns a column as it is written in an expression.
func columnText(name string) string {
	if identifier(name) {
		return name
	}
	return "col(" + strconv.Quote(name) + ")"
}

// pythonWords lists the keywords of Python and the names that formulas use. No variable for a column may have them.
var pythonWords = strings.Fields(
	`False None True and as assert async await break class continue def del elif else except finally for from global
	if import in is lambda nonlocal not or pass raise return try while with yield
	row str int abs len open dict format repr isinstance float hashlib struct zlib math mmh3 xxhash csv double codes time_of moment
	Decimal datetime timedelta timezone ZoneInfo`)

// pythonName returns the variable that stands for a column in formulas.
func pythonName(name string) string {
	if identifier(name) && !strings.Contains(name, "$") && !slices.Contains(pythonWords, name) {
		return name
	}
	return "row[" + strconv.Quote(name) + "]"
}

// words is the set of keywords of the expression language.
var words = map[string]bool{"in": true, "or": true, "and": true, "not": true, "matches": true, "contains": true,
	"startsWith": true, "endsWith": true, "let": true, "true": true, "false": true, "nil": true, "if": true, "else": true}

func identifier(name string) bool {
	for i, r := range name {
		if r != '_' && r != '$' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
			return false
		}
	}
	return name != "" && !words[name] && name != "$env"
}
