package keyexpr

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"example.com/tsimport/internal/exactcsv"
	"example.com/tsimport/internal/table"
)

// maxLookupBytes limits the size of a file for lookup, which is kept in memory.
const maxLookupBytes = 64 << 20

type lookupTable map[string][]byte

// lookup compiles the replacement of a name by its code in a CSV file. With "keep", a name without a code is kept.
func (c *compiler) lookup(k *call) *node {
	x := c.operand(k, 0, table.String, table.Integer)
	name := k.literal(1)
	keep := false
	if len(k.args) == 3 {
		word := k.literal(2)
		if keep = word == "keep"; !keep {
			panic(k.refusef("%q is not a way to treat unknown values; want %s", word, k.usage))
		}
	}
	t := c.lookupFile(k, name)
	n := &node{typ: table.String, src: k.src, order: unordered(k.src, 0), recipe: "the code of " + x.recipe + " in " +
		name, python: fmt.Sprintf("codes(%q)[%s]", name, textPython(x))}
	if keep {
		n.recipe += ", or itself if it has none"
		n.python = fmt.Sprintf("codes(%q).get(%s, %s)", name, textPython(x), textPython(x))
	} else {
		n.order[0].Values = len(t)
	}
	n.text = func(e *Evaluator, row []table.Value) bool {
		start := len(e.buf)
		text, ok := x.bytes(e, row)
		if !ok {
			return false
		}
		code, known := t[string(text)]
		switch {
		case known:
			e.buf = append(e.buf[:start], code...)
		case !keep:
			return e.fail(n, CodeUnknownName, text,
				"%q is not in %s; add it, or keep unknown values with lookup(x, file, \"keep\")", table.Show(text), name)
		default:
			e.buf = append(e.buf[:start], text...)
		}
		return true
	}
	return n
}

// lookupFile reads a file once for all calls that name it.
func (c *compiler) lookupFile(k *call, name string) lookupTable {
	if t := c.lookups[name]; t != nil {
		return t
	}
	read := c.program.env.ReadFile
	if read == nil {
		read = os.ReadFile
	}
	data, err := read(name)
	if err != nil {
		panic(k.refusef("read the codes: %v", err))
	}
	if len(data) > maxLookupBytes {
		panic(k.refusef("%s has %d bytes, the limit is %d; leave out names that do not occur", name, len(data),
			maxLookupBytes))
	}
	t := parseLookup(k, name, data)
	sum := sha256.Sum256(data)
	c.program.Files = append(c.program.Files, LookupFile{Name: name, SHA256: hex.EncodeToString(sum[:]),
		Shared: t.shared()})
	if c.lookups == nil {
		c.lookups = map[string]lookupTable{}
	}
	c.lookups[name] = t
	return t
}

// shared counts the names that share their code with another name.
func (t lookupTable) shared() (names int) {
	by := map[string]int{}
	for _, code := range t {
		by[string(code)]++
	}
	for _, n := range by {
		if n > 1 {
			names += n
		}
	}
	return names
}

func parseLookup(k *call, name string, data []byte) lookupTable {
	if !utf8.Valid(data) {
		panic(k.refusef("%s is not valid UTF-8", name))
	}
	r := exactcsv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	r.FieldsPerRecord = -1
	t := lookupTable{}
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			panic(k.refusef("%s: %v", name, err))
		}
		line, _ := r.FieldPos(0)
		switch _, twice := t[record[0]]; {
		case len(record) != 2:
			panic(k.refusef("%s line %d: %d columns; want a name and its code", name, line, len(record)))
		case twice:
			panic(k.refusef("%s line %d: the name %q is repeated; each name has one code", name, line, brief(record[0])))
		case record[1] == "":
			panic(k.refusef("%s line %d: the name %q has no code", name, line, brief(record[0])))
		}
		t[record[0]] = []byte(record[1])
	}
	if len(t) == 0 {
		panic(k.refusef("%s has no names", name))
	}
	return t
}
