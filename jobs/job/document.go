package job

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"example.com/tsimport/pipeline/options"
)

// Error is an error in a job file. Its text is one line.
type Error struct {
	File    string
	Line    int // 0 if unknown
	Message string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Message)
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
}

// document is a job file. It is read node by node, because decoding into structs would accept scalars of a wrong type.
type document struct{ name string }

func (d *document) errorf(line int, format string, a ...any) error {
	return &Error{d.name, line, fmt.Sprintf(format, a...)}
}

// libraryError matches the library's syntax errors.
var libraryError = regexp.MustCompile(`^yaml: (?:[a-z ]*:? ?line (\d+)[^:]*: )?(.*)$`)

// root returns the root node of the only document in a file. It refuses aliases.
func (d *document) root(text []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	err := decoder.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0:
		return nil, d.errorf(0, "the file is empty; want version, target and loads (docs/jobs.md)")
	case err != nil:
		return nil, d.syntaxError(err)
	}
	if err := decoder.Decode(&more); err == nil {
		return nil, d.errorf(more.Line, "second document; want one job per file")
	} else if !errors.Is(err, io.EOF) {
		return nil, d.syntaxError(err)
	}
	return doc.Content[0], d.noAliases(doc.Content[0])
}

func (d *document) syntaxError(err error) error {
	m := libraryError.FindStringSubmatch(strings.ReplaceAll(err.Error(), "\n", "; "))
	if m == nil {
		return d.errorf(0, "not YAML: %v", err)
	}
	line, _ := strconv.Atoi(m[1]) // 0 if the message has no line number
	return d.errorf(line, "not YAML: %s", m[2])
}

// noAliases refuses anchors and aliases, which could expand to any number of nodes.
func (d *document) noAliases(n *yaml.Node) error {
	switch {
	case n.Kind == yaml.AliasNode:
		return d.errorf(n.Line, "*%s: aliases are not supported; put common settings into defaults", n.Value)
	case n.Anchor != "":
		return d.errorf(n.Line, "&%s: anchors are not supported; put common settings into defaults", n.Anchor)
	}
	for _, c := range n.Content {
		if err := d.noAliases(c); err != nil {
			return err
		}
	}
	return nil
}

type entry struct {
	name  string
	line  int
	value *yaml.Node
}

// entries returns the keys of a mapping in order, or none for null.
func (d *document) entries(n *yaml.Node, what string) (all []entry, err error) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return nil, nil
	}
	if n.Kind != yaml.MappingNode {
		return nil, d.errorf(n.Line, "%s: want keys with values, not %s", what, kindName(n))
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode {
			return nil, d.errorf(k.Line, "%s: want the name of a key, not %s", what, kindName(k))
		}
		if j := slices.IndexFunc(all, func(e entry) bool { return e.name == k.Value }); j >= 0 {
			return nil, d.errorf(k.Line, "%s is given twice, first on line %d", quoted(k.Value), all[j].line)
		}
		all = append(all, entry{k.Value, k.Line, n.Content[i+1]})
	}
	return all, nil
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys with values"
	case yaml.SequenceNode:
		return "a list"
	}
	return quoted(n.Value)
}

// quoted quotes a text of the file for display.
func quoted(text string) string {
	if r := []rune(text); len(r) > 60 {
		text = string(r[:60]) + "…"
	}
	return strconv.Quote(text)
}

func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" &&
		n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0
}

func (d *document) values(e entry, k *options.Option) (values []string, err error) {
	n := e.value
	switch {
	case n.Kind == yaml.MappingNode && (k.Kind == options.Renamings || k.Kind == options.Typings):
		pairs, err := d.entries(n, k.Name)
		if err != nil {
			return nil, err
		}
		for _, p := range pairs {
			of, err := d.scalar(p, &options.Option{Name: k.Name})
			if err != nil {
				return nil, err
			}
			from := p.name
			if k.Kind == options.Renamings {
				from = `"` + strings.ReplaceAll(from, `"`, `""`) + `"`
			}
			values = append(values, from+"="+of)
		}
		return values, nil
	case n.Kind == yaml.SequenceNode && (k.Kind.Repeated() || k.Kind == options.List):
		for _, item := range n.Content {
			text, err := d.scalar(entry{k.Name, item.Line, item}, &options.Option{Name: k.Name})
			if err != nil {
				return nil, err
			}
			values = append(values, text)
		}
		if k.Kind == options.List {
			return []string{joinNames(values)}, nil
		}
		return values, nil
	}
	text, err := d.scalar(e, k)
	return []string{text}, err
}

// joinNames joins names with commas. A name with a comma or a quote is quoted as in CSV.
func joinNames(names []string) string {
	all := slices.Clone(names)
	for i, n := range all {
		if n == "" || strings.ContainsAny(n, "\",\n\r") || n[0] == ' ' {
			all[i] = `"` + strings.ReplaceAll(n, `"`, `""`) + `"`
		}
	}
	return strings.Join(all, ",")
}

// scalar reads one value. A text with ${ is checked later, when the variable's value is known.
func (d *document) scalar(e entry, k *options.Option) (string, error) {
	n := e.value
	wrong := func() error {
		return d.errorf(n.Line, "%s: want %s, not %s", k.Name, k.Kind.Wants(), kindName(n))
	}
	if n.Kind != yaml.ScalarNode || isNull(n) {
		return "", wrong()
	}
	tag := n.ShortTag()
	if tag == "!!str" && strings.Contains(n.Value, "${") {
		return n.Value, nil
	}
	if !isOf(k.Kind, n.Value, tag) {
		return "", wrong()
	}
	return n.Value, nil
}

// isOf reports whether a text with this YAML tag is a value of the kind.
func isOf(k options.Kind, text, tag string) bool {
	var err error
	switch k {
	case options.Switch:
		return (text == "true" || text == "false") && tag != "!!str"
	case options.Whole:
		_, err = strconv.ParseInt(text, 10, 64)
		return err == nil && tag != "!!str"
	case options.Number:
		_, err = strconv.ParseFloat(text, 64)
		return err == nil && tag != "!!str"
	case options.Duration:
		_, err = time.ParseDuration(text)
		return err == nil
	}
	return tag != "!!bool" && tag != "!!binary"
}
