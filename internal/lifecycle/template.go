package lifecycle

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"example.com/tsimport/internal/table"
)

// Template is a name pattern of tables that each hold one period: consume_{month} matches consume_202403.
type Template struct {
	Unit           Unit
	Zone           string // time zone in which loads assign rows to periods; may be empty
	prefix, suffix string
}

// lastTexts matches the last one or two string arguments of a call, as in month(PaidAt, "Asia/Shanghai", "s").
var lastTexts = regexp.MustCompile("(?:,\\s*[\"'`]([^\"'`]*)[\"'`]\\s*)?,\\s*[\"'`]([^\"'`]*)[\"'`]\\s*\\)$")

// ZoneOf returns the zone argument of a call of year, month or day, or "" if it has none.
func ZoneOf(call string) string {
	for _, word := range lastTexts.FindStringSubmatch(strings.TrimSpace(call)) {
		if !strings.ContainsAny(word, ",)") && !slices.Contains([]string{"", "s", "ms", "us", "ns"}, word) {
			return word
		}
	}
	return ""
}

// ParseTemplate reads a template with {month}, {day} or {year}, with or without arguments: {month(OrderTime)}.
func ParseTemplate(text string) (*Template, error) {
	prefix, rest, open := strings.Cut(text, "{")
	inner, suffix, closed := cutClosing(rest)
	if !open || !closed || strings.ContainsAny(suffix, "{}") || strings.Contains(prefix, "}") {
		return nil, fmt.Errorf("table %q: want one period in braces, as in consume_{month}", text)
	}
	name, _, called := strings.Cut(strings.TrimSpace(inner), "(")
	if called && !strings.HasSuffix(strings.TrimSpace(inner), ")") {
		return nil, fmt.Errorf("table %q: {%s} lacks a closing ); want a period, such as consume_{month}", text, inner)
	}
	unit, err := ParseUnit(strings.TrimSpace(name))
	if err != nil {
		return nil, fmt.Errorf("table %q: %w", text, err)
	}
	t := &Template{Unit: unit, prefix: prefix, suffix: suffix, Zone: ZoneOf(inner)}
	if err := table.CheckTableName(t.Name(unit.at(time.Unix(0, 0).UTC()))); err != nil {
		return nil, fmt.Errorf("table %q does not produce valid table names: %w", text, err)
	}
	return t, nil
}

// cutClosing cuts text at the closing brace. It ignores braces inside string literals.
func cutClosing(text string) (inner, rest string, found bool) {
	var quote rune
	for i, r := range text {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '"' || r == '\'':
			quote = r
		case r == '}':
			return text[:i], text[i+1:], true
		}
	}
	return "", "", false
}

func (t *Template) String() string { return t.prefix + "{" + t.Unit.String() + "}" + t.suffix }

func (t *Template) Name(p Period) string { return t.prefix + p.String() + t.suffix }

// Period returns the period of a table, or false if the name does not match the template.
func (t *Template) Period(name string) (Period, bool) {
	rest, begins := strings.CutPrefix(name, t.prefix)
	rest, ends := strings.CutSuffix(rest, t.suffix)
	if !begins || !ends {
		return Period{}, false
	}
	return t.Unit.parse(rest)
}
