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

// Bounds of what a policy may say.
const (
	maxPolicyBytes   = 1 << 20
	maxAge           = 1_000_000
	maxReservedUnits = 100_000 // of a table, for reading and for writing each
	maxNumber        = 1<<31 - 1
)

// Read reads a policy's file. An archive's relative folder is relative to that of the file.
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

// Parse reads a policy. Its name is for errors, which are one line with the number of the line they are about.
func Parse(name string, text []byte) (*Policy, error) {
	if len(text) > maxPolicyBytes {
		return nil, fmt.Errorf("policy %s: over %d bytes; is it a policy?", name, maxPolicyBytes)
	}
	d := &document{name: name}
	root, err := d.root(text)
	if err != nil {
		return nil, err
	}
	p := &Policy{Zone: time.UTC}
	if err := readObject(d, root, "a policy", policyFields(), p); err != nil {
		return nil, err
	}
	return p, nil
}

// address is how addresses such as oss://bucket/x begin; a path of one letter and a colon is on a drive.
var address = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]+:/`)

// document is a policy's file that is being read. The file is taken apart node by node: the library's own decoding into
// structs lets scalars of other types and repeated keys of some kinds pass, and words its errors for programmers.
type document struct{ name string }

func (d *document) errorf(n *yaml.Node, format string, a ...any) error {
	return fmt.Errorf("policy %s, line %d: %s", d.name, max(1, n.Line), fmt.Sprintf(format, a...))
}

// libraryError is how the library words what it cannot read.
var libraryError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

func (d *document) root(text []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	err := decoder.Decode(&doc)
	if errors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0 {
		return nil, fmt.Errorf("policy %s: it is empty; want period and classes", d.name)
	}
	if err != nil {
		return nil, d.syntaxError(err)
	}
	if err := decoder.Decode(&more); err == nil {
		return nil, d.errorf(&more, "a second document; want one policy a file")
	} else if !errors.Is(err, io.EOF) {
		return nil, d.syntaxError(err)
	}
	return doc.Content[0], nil
}

func (d *document) syntaxError(err error) error {
	m := libraryError.FindStringSubmatch(strings.ReplaceAll(err.Error(), "\n", "; "))
	switch {
	case m == nil:
		return fmt.Errorf("policy %s: not YAML: %w", d.name, err)
	case m[1] == "":
		return fmt.Errorf("policy %s: not YAML: %s", d.name, m[2])
	}
	return fmt.Errorf("policy %s, line %s: not YAML: %s", d.name, m[1], m[2])
}

// field is one that a mapping may have.
type field[T any] struct {
	name     string
	required bool
	read     func(*document, *yaml.Node, *T) error
}

func policyFields() []field[Policy] {
	return []field[Policy]{
		{"period", true, func(d *document, n *yaml.Node, p *Policy) (err error) {
			name, err := d.text(n, "a period")
			if err != nil {
				return err
			}
			if p.Unit, err = ParseUnit(name); err != nil {
				return d.errorf(n, "%v", err)
			}
			return nil
		}},
		{"zone", false, (*document).zone},
		{"classes", true, (*document).classes},
	}
}

func classFields() []field[Class] {
	number := func(what string, from, to int, place func(*Class) **int) func(*document, *yaml.Node, *Class) error {
		return func(d *document, n *yaml.Node, c *Class) error {
			v, err := d.number(n, what, from, to)
			*place(c) = &v
			return err
		}
	}
	return []field[Class]{
		{"up_to", false, func(d *document, n *yaml.Node, c *Class) (err error) {
			c.UpTo, err = d.number(n, "an age", 0, maxAge)
			return err
		}},
		{"reserved", false, func(d *document, n *yaml.Node, c *Class) error {
			return readObject(d, n, "reserved throughput", reservedFields(), c)
		}},
		{"ttl", false, func(d *document, n *yaml.Node, c *Class) error {
			v, err := d.number(n, "a time to live in seconds", -1, maxNumber)
			if err == nil {
				if bad := table.CheckTimeToLive(v); bad != nil {
					return d.errorf(n, "ttl %d: %v", v, bad)
				}
			}
			c.TTL = &v
			return err
		}},
		{"max_versions", false, number("a number of versions", 1, maxNumber, func(c *Class) **int { return &c.MaxVersions })},
		{"archive", false, func(d *document, n *yaml.Node, c *Class) (err error) {
			c.Archive, err = d.text(n, "a folder")
			switch {
			case err == nil && c.Archive == "":
				return d.errorf(n, "archive is empty; want a folder")
			case err == nil && address.MatchString(c.Archive):
				return d.errorf(n, "archive %q is an address; tables are exported to a folder of this machine only", shorten(c.Archive))
			}
			return err
		}},
	}
}

func reservedFields() []field[Class] {
	units := func(place func(*Class) **int) func(*document, *yaml.Node, *Class) error {
		return func(d *document, n *yaml.Node, c *Class) error {
			v, err := d.number(n, "a number of capacity units", 0, maxReservedUnits)
			*place(c) = &v
			return err
		}
	}
	return []field[Class]{
		{"read", false, units(func(c *Class) **int { return &c.Read })},
		{"write", false, units(func(c *Class) **int { return &c.Write })},
	}
}

// readObject reads a mapping: each of its keys once and known, all that are required there.
func readObject[T any](d *document, n *yaml.Node, what string, fields []field[T], to *T) error {
	if err := d.kind(n, yaml.MappingNode, "the fields of "+what); err != nil {
		return err
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if err := d.kind(key, yaml.ScalarNode, "the name of a field"); err != nil {
			return err
		}
		at := slices.IndexFunc(fields, func(f field[T]) bool { return f.name == key.Value })
		if at < 0 {
			return d.errorf(key, "unknown field %q of %s; there are %s", shorten(key.Value), what, fieldNames(fields))
		}
		if first := lines[key.Value]; first > 0 {
			return d.errorf(key, "%s is there twice, first on line %d", key.Value, first)
		}
		lines[key.Value] = key.Line
		if err := fields[at].read(d, value, to); err != nil {
			return err
		}
	}
	for _, f := range fields {
		if f.required && lines[f.name] == 0 {
			return d.errorf(n, "%s lacks %s; see docs/age.md", what, f.name)
		}
	}
	return nil
}

func fieldNames[T any](fields []field[T]) string {
	var names []string
	for _, f := range fields {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

// kind refuses nodes of another kind. Anchors and aliases have no use in a file this small, and an alias may stand for
// any number of nodes.
func (d *document) kind(n *yaml.Node, kind yaml.Kind, want string) error {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return d.errorf(n, "anchors and aliases are not understood; write it out")
	}
	if n.Kind != kind {
		return d.errorf(n, "want %s", want)
	}
	return nil
}

func (d *document) text(n *yaml.Node, want string) (string, error) {
	if err := d.kind(n, yaml.ScalarNode, want); err != nil {
		return "", err
	}
	if n.ShortTag() != "!!str" {
		return "", d.errorf(n, "%q: want %s as a text", shorten(n.Value), want)
	}
	return n.Value, nil
}

// number reads a whole number in decimal digits: YAML has more ways to write one, and 010 would be eight in some.
func (d *document) number(n *yaml.Node, want string, from, to int) (int, error) {
	if err := d.kind(n, yaml.ScalarNode, want); err != nil {
		return 0, err
	}
	v, err := strconv.Atoi(n.Value)
	if n.ShortTag() != "!!int" || n.Style != 0 || err != nil && !errors.Is(err, strconv.ErrRange) || strconv.Itoa(v) != n.Value && err == nil {
		return 0, d.errorf(n, "%q: want %s as a whole number in digits", shorten(n.Value), want)
	}
	if err != nil || v < from || v > to {
		return 0, d.errorf(n, "%s: want %s from %d to %d", shorten(n.Value), want, from, to)
	}
	return v, nil
}

func shorten(text string) string {
	if len(text) > 60 {
		return text[:60] + "…"
	}
	return text
}

func (d *document) zone(n *yaml.Node, p *Policy) error {
	name, err := d.text(n, "a time zone")
	if err != nil {
		return err
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return d.errorf(n, "zone %q is not known; want a name such as Asia/Shanghai or UTC", shorten(name))
	}
	p.Zone = zone
	return nil
}

func (d *document) classes(n *yaml.Node, p *Policy) error {
	if err := d.kind(n, yaml.SequenceNode, "a list of classes"); err != nil {
		return err
	}
	if len(n.Content) == 0 {
		return d.errorf(n, "no classes; want at least one")
	}
	for i, item := range n.Content {
		c := Class{Number: i + 1, UpTo: Unbounded}
		if i > 0 {
			c.From = p.Classes[i-1].UpTo + 1
		}
		if err := readObject(d, item, "a class", classFields(), &c); err != nil {
			return err
		}
		if err := d.checkClass(item, &c, i == len(n.Content)-1); err != nil {
			return err
		}
		p.Classes = append(p.Classes, c)
	}
	return nil
}

// checkClass keeps classes in order and without gaps.
func (d *document) checkClass(n *yaml.Node, c *Class, last bool) error {
	switch {
	case last && c.UpTo != Unbounded:
		return d.errorf(n, "the last class has everything that is older: leave out its up_to, or add a class {} that changes nothing")
	case !last && c.UpTo == Unbounded:
		return d.errorf(n, "class %d lacks up_to; only the last class has no bound", c.Number)
	case c.UpTo < c.From:
		return d.errorf(n, "up_to %d of class %d: want %d or more, after the class before it", c.UpTo, c.Number, c.From)
	case c.Archives() && !last:
		return d.errorf(n, "class %d archives and is not the last; what is older than an archived period can be in no table", c.Number)
	case c.Archives() && c.Number == 1:
		return d.errorf(n, "the first class archives, so there would be no tables at all; put a class with up_to before it")
	case c.Archives() && (c.Read != nil || c.Write != nil || c.TTL != nil || c.MaxVersions != nil):
		return d.errorf(n, "class %d archives, so it has no tables; leave out reserved, ttl and max_versions", c.Number)
	}
	return nil
}
