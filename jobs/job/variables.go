package job

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"example.com/tsimport/reader/input"
)

// variable matches ${NAME} and ${NAME:-default}.
var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^{}]*))?\}`)

// checkVariables refuses malformed variables, and secrets in plain text.
func (d *document) checkVariables(line int, key, text string) error {
	rest := variable.ReplaceAllString(text, "")
	if i := strings.Index(rest, "${"); i >= 0 {
		return d.errorf(line, "%s: %s is not a variable; want ${NAME} or ${NAME:-default}", key, quoted(rest[i:]))
	}
	if hasSecret(variable.ReplaceAllString(text, "$3")) {
		return d.errorf(line, "%s: contains a secret in plain text; put it into an environment variable, ${NAME} here", key)
	}
	return nil
}

// hasSecret reports whether a text, with its variables empty, contains a secret.
func hasSecret(text string) bool {
	if input.Redact(text) == text {
		return false
	}
	u, err := url.Parse(strings.TrimPrefix(text, "@"))
	if err != nil {
		return true
	}
	// An empty password or query value comes from a variable, and is not a secret in plain text.
	if password, _ := u.User.Password(); password == "" {
		u.User = nil
	}
	q := u.Query()
	for name, values := range q {
		if !slices.ContainsFunc(values, func(v string) bool { return v != "" }) {
			q.Del(name)
		}
	}
	u.RawQuery = q.Encode()
	return input.Redact(u.String()) != u.String()
}

type Lookup func(name string) (value string, ok bool)

func expand(text string, lookup Lookup) (string, error) {
	var missing error
	text = variable.ReplaceAllStringFunc(text, func(found string) string {
		m := variable.FindStringSubmatch(found)
		value, ok := lookup(m[1])
		switch {
		case m[2] != "":
			return cmp.Or(value, m[3])
		case !ok && missing == nil:
			missing = fmt.Errorf("environment variable %s is not set", m[1])
		}
		return value
	})
	return text, missing
}

// Resolve returns the load with its variables replaced. Errors name file.
func (s Single) Resolve(file string, lookup Lookup) (Single, error) {
	at := func(line int, key, text string) (string, error) {
		out, err := expand(text, lookup)
		if err != nil {
			return "", &Error{file, line, fmt.Sprintf("load %s: %s: %v", s.Name, key, err)}
		}
		return out, nil
	}
	out := s
	out.From, out.Settings = slices.Clone(s.From), slices.Clone(s.Settings)
	var err error
	for i, text := range out.From {
		if out.From[i], err = at(s.line, keyFrom, text); err != nil {
			return out, err
		}
	}
	for i, t := range out.Settings {
		out.Settings[i].Values = slices.Clone(t.Values)
		for j, text := range t.Values {
			if out.Settings[i].Values[j], err = at(t.line, t.Key, text); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

// ResolveSettings is like Resolve, for the job's own settings.
func ResolveSettings(file string, settings []Setting, lookup Lookup) ([]Setting, error) {
	s, err := Single{Name: "defaults", Settings: settings}.Resolve(file, lookup)
	return s.Settings, err
}

// variables returns the load's variables sorted by name.
func (s *Single) variables() (names []string) {
	texts := slices.Clone(s.From)
	for _, t := range s.Settings {
		texts = append(texts, t.Values...)
	}
	for _, text := range texts {
		for _, m := range variable.FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
