package lifecycle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"example.com/tsimport/internal/table"
)

// Limits of a policy.
const (
	maxPolicyBytes   = 1 << 20
	maxAge           = 1_000_000
	maxReservedUnits = 100_000 // limit for a table, for reading and writing separately
	maxNumber        = 1<<31 - 1
)

// Read reads a policy file. A relative path of an archive is relative to the folder of the file.
func Read(file string) (*Policy, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read policy: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPolicyBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read policy: %w", err)
	}
	p, err := Parse(file, text)
	if err != nil {
		return nil, err
	}
	p.resolve(filepath.Dir(file))
	return p, nil
}

// Parse parses a policy. An error is one line with name and, if known, the line number.
func Parse(name string, text []byte) (p *Policy, err error) {
	if len(text) > maxPolicyBytes {
		return nil, fmt.Errorf("policy %s: larger than %d bytes; is it a policy?", name, maxPolicyBytes)
	}
	p = &Policy{Zone: time.UTC}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case refusal:
			p, err = nil, r.error
		default:
			panic(r)
		}
	}()
	d := &document{name: name}
	readObject(d, d.root(text), "a policy", policyFields(), p)
	return p, nil
}

// refusal says what is wrong with a policy. Functions that read parts of a policy panic with it, and Parse returns it.
type refusal struct{ error }

// address matches addresses such as https://x, but not drives such as C:. stores matches addresses in object stores.
var (
	address = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]+:/`)
	stores  = regexp.MustCompile(`(?i)^(oss|s3)://`)
)

// document is a policy file, read node by node because decoding into structs accepts too much and gives poor errors.
type document struct{ name string }

func (d *document) refusef(n *yaml.Node, format string, a ...any) refusal {
	return refusal{fmt.Errorf("policy %s, line %d: %s", d.name, max(1, n.Line), fmt.Sprintf(format, a...))}
}

var libraryError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

func (d *document) root(text []byte) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	err := decoder.Decode(&doc)
	if errors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0 {
		panic(refusal{fmt.Errorf("policy %s: it is empty; want period and classes", d.name)})
	}
	if err != nil {
		panic(d.syntaxError(err))
	}
	if err := decoder.Decode(&more); err == nil {
		panic(d.refusef(&more, "a second document; want one policy a file"))
	} else if !errors.Is(err, io.EOF) {
		panic(d.syntaxError(err))
	}
	return doc.Content[0]
}

func (d *document) syntaxError(err error) refusal {
	m := libraryError.FindStringSubmatch(strings.ReplaceAll(err.Error(), "\n", "; "))
	switch {
	case m == nil:
		return refusal{fmt.Errorf("policy %s: not YAML: %w", d.name, err)}
	case m[1] == "":
		return refusal{fmt.Errorf("policy %s: not YAML: %s", d.name, m[2])}
	}
	return refusal{fmt.Errorf("policy %s, line %s: not YAML: %s", d.name, m[1], m[2])}
}

type field[T any] struct {
	name     string
	required bool
	read     func(*document, *yaml.Node, *T)
}

func policyFields() []field[Policy] {
	return []field[Policy]{
		{"period", true, (*document).period},
		{"zone", false, (*document).zone},
		{"classes", true, (*document).classes},
	}
}

func number(name, what string, from, to int, place func(*Class) **int) field[Class] {
	return field[Class]{name, false, func(d *document, n *yaml.Node, c *Class) {
		*place(c) = new(d.number(n, what, from, to))
	}}
}

func classFields() []field[Class] {
	return []field[Class]{
		{"up_to", false, func(d *document, n *yaml.Node, c *Class) { c.UpTo = d.number(n, "an age", 0, maxAge) }},
		{"reserved", false, func(d *document, n *yaml.Node, c *Class) {
			readObject(d, n, "reserved throughput", reservedFields(), c)
		}},
		{"ttl", false, func(d *document, n *yaml.Node, c *Class) {
			c.TTL = new(d.number(n, "a time to live in seconds", -1, maxNumber))
			if bad := table.CheckTimeToLive(*c.TTL); bad != nil {
				panic(d.refusef(n, "ttl %d: %v", *c.TTL, bad))
			}
		}},
		number("max_versions", "a number of versions", 1, maxNumber, func(c *Class) **int { return &c.MaxVersions }),
		{"archive", false, func(d *document, n *yaml.Node, c *Class) {
			switch c.Archive = d.text(n, "a folder or an address"); {
			case c.Archive == "":
				panic(d.refusef(n, "archive is empty; want a folder, oss://bucket/prefix or s3://bucket/prefix"))
			case address.MatchString(c.Archive) && !c.Remote():
				panic(d.refusef(n, "archive %q is an address of another kind; want a folder, oss://bucket/prefix or "+
					"s3://bucket/prefix", shorten(c.Archive)))
			}
		}},
		{"drop", false, func(d *document, n *yaml.Node, c *Class) {
			if d.kind(n, yaml.ScalarNode, "true"); n.ShortTag() != "!!bool" || n.Value != "true" {
				panic(d.refusef(n, "drop %q: want true; leave drop out to keep the tables", shorten(n.Value)))
			}
			c.Drop = true
		}},
	}
}

func reservedFields() []field[Class] {
	return []field[Class]{
		number("read", "a number of capacity units", 0, maxReservedUnits, func(c *Class) **int { return &c.Read }),
		number("write", "a number of capacity units", 0, maxReservedUnits, func(c *Class) **int { return &c.Write }),
	}
}

// readObject reads a mapping. Every key must be the name of a field and occur once; required fields must be present.
func readObject[T any](d *document, n *yaml.Node, what string, fields []field[T], to *T) {
	d.kind(n, yaml.MappingNode, "the fields of "+what)
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		d.kind(key, yaml.ScalarNode, "the name of a field")
		at := slices.IndexFunc(fields, func(f field[T]) bool { return f.name == key.Value })
		if at < 0 {
			panic(d.refusef(key, "unknown field %q of %s; there are %s", shorten(key.Value), what, fieldNames(fields)))
		}
		if first := lines[key.Value]; first > 0 {
			panic(d.refusef(key, "%s appears twice, first on line %d", key.Value, first))
		}
		lines[key.Value] = key.Line
		fields[at].read(d, value, to)
	}
	for _, f := range fields {
		if f.required && lines[f.name] == 0 {
			panic(d.refusef(n, "%s lacks %s; see docs/age.md", what, f.name))
		}
	}
}

func fieldNames[T any](fields []field[T]) string {
	var names []string
	for _, f := range fields {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

// kind refuses nodes of other kinds, and anchors and aliases, with which a small file could expand into many nodes.
func (d *document) kind(n *yaml.Node, kind yaml.Kind, want string) {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		panic(d.refusef(n, "anchors and aliases are not supported; write the value out"))
	}
	if n.Kind != kind {
		panic(d.refusef(n, "want %s", want))
	}
}

func (d *document) text(n *yaml.Node, want string) string {
	d.kind(n, yaml.ScalarNode, want)
	if n.ShortTag() != "!!str" {
		panic(d.refusef(n, "%q: want %s as a string", shorten(n.Value), want))
	}
	return n.Value
}

// number reads a whole number in plain decimal digits: other YAML notations are ambiguous, as 010 may mean eight.
func (d *document) number(n *yaml.Node, want string, from, to int) int {
	d.kind(n, yaml.ScalarNode, want)
	v, err := strconv.Atoi(n.Value)
	if n.ShortTag() != "!!int" || n.Style != 0 || err != nil && !errors.Is(err, strconv.ErrRange) ||
		strconv.Itoa(v) != n.Value && err == nil {
		panic(d.refusef(n, "%q: want %s as a whole number in digits", shorten(n.Value), want))
	}
	if err != nil || v < from || v > to {
		panic(d.refusef(n, "%s: want %s from %d to %d", shorten(n.Value), want, from, to))
	}
	return v
}

func shorten(text string) string {
	if len(text) > 60 {
		return text[:60] + "…"
	}
	return text
}

func (d *document) period(n *yaml.Node, p *Policy) {
	var err error
	if p.Unit, err = ParseUnit(d.text(n, "a period")); err != nil {
		panic(d.refusef(n, "%v", err))
	}
}

func (d *document) zone(n *yaml.Node, p *Policy) {
	name := d.text(n, "a time zone")
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		panic(d.refusef(n, "zone %q is not known; want a name such as Asia/Shanghai or UTC", shorten(name)))
	}
	p.Zone = zone
}

func (d *document) classes(n *yaml.Node, p *Policy) {
	d.kind(n, yaml.SequenceNode, "a list of classes")
	if len(n.Content) == 0 {
		panic(d.refusef(n, "no classes; want at least one"))
	}
	for i, item := range n.Content {
		c := Class{Number: i + 1, UpTo: Unbounded}
		if i > 0 {
			c.From = p.Classes[i-1].UpTo + 1
		}
		readObject(d, item, "a class", classFields(), &c)
		d.checkClass(item, &c, i == len(n.Content)-1)
		p.Classes = append(p.Classes, c)
	}
}

// checkClass refuses a class that is out of order, leaves a gap or contradicts itself.
func (d *document) checkClass(n *yaml.Node, c *Class, last bool) {
	switch {
	case last && c.UpTo != Unbounded:
		panic(d.refusef(n, "the last class must cover all older periods: leave out its up_to, or add a class {}"))
	case !last && c.UpTo == Unbounded:
		panic(d.refusef(n, "class %d lacks up_to; only the last class has no bound", c.Number))
	case c.UpTo < c.From:
		panic(d.refusef(n, "up_to %d of class %d: want %d or more, after the class before it", c.UpTo, c.Number, c.From))
	case c.Archives() && c.Drop:
		panic(d.refusef(n, "class %d has archive and drop, which contradict each other; leave out one of them", c.Number))
	case c.Expires() && !last:
		panic(d.refusef(n, "class %d %s and is not the last; nothing is older than an expired period", c.Number, c.does()))
	case c.Expires() && c.Number == 1:
		panic(d.refusef(n, "the first class %s, so no tables would remain; put one with up_to before it", c.does()))
	case c.Expires() && (c.Read != nil || c.Write != nil || c.TTL != nil || c.MaxVersions != nil):
		panic(d.refusef(n, "class %d %s, so it has no tables; leave out reserved, ttl and max_versions", c.Number, c.does()))
	}
}

// does returns the verb that says in messages what a class does with its tables.
func (c *Class) does() string {
	if c.Drop {
		return "drops"
	}
	return "archives"
}
