package sqlname

import (
	"fmt"
	"strings"
)

// Part returns a part of a name, quoted if necessary.
func Part(name string) string {
	if strings.ContainsAny(name, `."`) {
		return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	}
	return name
}

func Join(parts ...string) string {
	all := make([]string, len(parts))
	for i, p := range parts {
		all[i] = Part(p)
	}
	return strings.Join(all, ".")
}

// Split returns the parts of a name. No part is empty. Quotes are literal in a part that does not begin with one.
func Split(text string) (parts []string, err error) {
	for rest := text; ; {
		var part string
		if inner, quoted := strings.CutPrefix(rest, `"`); quoted {
			if part, rest, err = unquote(inner); err != nil {
				return nil, fmt.Errorf("%s: %w", text, err)
			}
		} else if dot := strings.IndexByte(rest, '.'); dot >= 0 {
			part, rest = rest[:dot], rest[dot:]
		} else {
			part, rest = rest, ""
		}
		parts = append(parts, part)
		switch {
		case part == "":
			return nil, fmt.Errorf("%s: a part of the name is empty", text)
		case rest == "":
			return parts, nil
		case rest[0] != '.':
			return nil, fmt.Errorf("%s: a quoted part must be followed by a dot or nothing; double any quote within it", text)
		}
		rest = rest[1:]
	}
}

// unquote reads a quoted part up to its closing quote.
func unquote(inner string) (part, rest string, err error) {
	for {
		before, after, closed := strings.Cut(inner, `"`)
		if !closed {
			return "", "", fmt.Errorf("a quote is not closed")
		}
		part += before
		if !strings.HasPrefix(after, `"`) {
			return part, after, nil
		}
		part, inner = part+`"`, after[1:]
	}
}
