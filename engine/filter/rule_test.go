package filter

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
)

func TestRuleComparesPartOfText(t *testing.T) {
	const text = "{cluster_name:name1,lastupdatetime:12345,load:-1.5e2}"
	for name, v := range map[string]struct {
		stored any
		regex  string
		cast   wire.ValueType
		op     comparator
		value  any
		want   bool
	}{
		"a group that takes no part":           {"b", `(a)?b`, wire.String, equal, "", false},
		"a group that is empty":                {"b", `(a*)b`, wire.String, equal, "", true},
		"an integer that is too large":         {"9223372036854775808", `.*`, wire.Integer, notEqual, 1, false},
		"the largest integer":                  {"9223372036854775807", `.*`, wire.Integer, equal, math.MaxInt64, true},
		"text that is no double":               {"1.2.3", `.*`, wire.Double, notEqual, 1.0, false},
		"hexadecimal is no double":             {"0x1p4", `.*`, wire.Double, equal, 16.0, false},
		"infinity is no double":                {"inf", `.*`, wire.Double, greater, 1.0, false},
		"a double that is too large":           {"1e999", `.*`, wire.Double, greater, 1.0, false},
		"whether there is a match":             {text, `name\d`, wire.String, exists, 0, true},
		"whether there is none":                {text, `name\d`, wire.String, existsNot, 0, false},
		"whether there is one where none is":   {text, `nothing`, wire.String, exists, 0, false},
		"whether there is none where none is":  {text, `nothing`, wire.String, existsNot, 0, true},
		"whether there is an integer in words": {"seven", `.*`, wire.Integer, existsNot, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := decode(t, leaf{op: v.op, column: "c", value: v.value, rule: transfer(v.regex, v.cast)}.bytes())
			conformance.Equal(t, f.Match(nil, cells("c", v.stored)), v.want, "match")
		})
	}
	t.Run("the default type is integer", func(t *testing.T) {
		f := decode(t, leaf{op: equal, column: "c", value: 12, rule: raw(1, []byte(`\d+`))}.bytes())
		conformance.Equal(t, f.Match(nil, cells("c", "a12")), true, "does not match")
	})
	t.Run("a missing column is decided before the rule", func(t *testing.T) {
		f := decode(t, leaf{op: existsNot, column: "c", value: 0, filterIfMissing: true,
			rule: transfer("x", wire.String)}.bytes())
		conformance.Equal(t, f.Match(nil, nil), false, "a missing column passes")
	})
}

func TestInvalidRulesAreRefused(t *testing.T) {
	for name, v := range map[string]struct {
		regex string
		cast  wire.ValueType
		ok    bool
	}{
		"256 bytes":                         {strings.Repeat("a", 256), wire.String, true},
		"257 bytes":                         {strings.Repeat("a", 257), wire.String, false},
		"an empty expression":               {"", wire.String, true},
		"a bracket that stays open":         {"(a", wire.String, false},
		"a look-ahead of Perl":              {"a(?=b)", wire.String, false},
		"a back-reference of Perl":          {`(a)\1`, wire.String, false},
		"text that is none":                 {"\xff", wire.String, false},
		"a character a thousand times":      {"a{1000}", wire.String, true},
		"up to 512 times":                   {"a{0,512}", wire.String, true},
		"up to 513 times":                   {"a{0,513}", wire.String, false},
		"a thousand and one times":          {"a{1001}", wire.String, false},
		"nested repeats":                    {"(?:(?:a{40}){40}){40}", wire.String, false},
		"repeats side by side":              {strings.Repeat("(?:a{30}){30}", 19), wire.String, false},
		"nested repeats of a class":         {`(?:\pL{100}){100}`, wire.String, false},
		"brackets as deep as there is room": {strings.Repeat("(", 128) + strings.Repeat(")", 128), wire.String, true},
		"as a boolean":                      {"a", wire.Boolean, false},
		"as null":                           {"a", wire.Null, false},
		"as a binary":                       {"a", wire.Binary, false},
		"as an unknown type":                {"a", 5, false},
		"as a type beyond all":              {"a", 200, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decode(leaf{op: 1, column: "c", value: 1, rule: transfer(v.regex, v.cast)}.bytes())
			conformance.True(t, v.ok == (err == nil) && (err == nil || err.Code == wire.CodeParameterInvalid), "%v", err)
		})
	}
}

// The estimated size of an expression, which decides whether it is accepted, is close to the size of its program.
func TestRegexSizeEstimateIsClose(t *testing.T) {
	for _, text := range []string{
		"", "abc", "a|bc|[d-f]", "(a)(?:b)*c+d?", "a{7}", "a{0,1000}", "(ab|c){3,9}", "(?:x{3,}){5}", `^\d+$`, "(?i)straße",
		`(a{2,5}|b{3,}){10}`, strings.Repeat("(", 128) + strings.Repeat(")", 128),
	} {
		re, err := syntax.Parse(text, syntax.Perl)
		conformance.MustEqual(t, err, nil, "error")
		estimate := size(re)
		prog, err := syntax.Compile(re.Simplify())
		conformance.MustEqual(t, err, nil, "error")
		n := len(prog.Inst)
		conformance.True(t, n <= 2*estimate+8 && estimate <= 2*n, "%q: %d instructions, estimated %d", text, n, estimate)
	}
}

func TestExpressionsOfFilterShareSizeLimit(t *testing.T) {
	of := func(times string, n int) []byte {
		var subs [][]byte
		for range n {
			subs = append(subs, leaf{op: equal, column: "c", value: 1, rule: transfer("a{"+times+"}", wire.String)}.bytes())
		}
		return composite(combineOr, subs...)
	}
	for _, v := range []struct {
		times string
		n     int
		ok    bool
	}{{"512", 2, true}, {"513", 2, false}, {"32", 31, true}, {"34", 31, false}} {
		_, err := Decode(of(v.times, v.n))
		conformance.Equal(t, v.ok, err == nil, "%d expressions of %s characters: %v", v.n, v.times, err)
	}
}

// Protobuf is encoded by hand, because the engine can only decode it.

func number(id protowire.Number, v int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, id, protowire.VarintType), uint64(v))
}

func raw(id protowire.Number, b []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, id, protowire.BytesType), b)
}

func flag(on bool) int64 {
	if on {
		return 1
	}
	return 0
}

func envelope(typ int64, body []byte) []byte { return slices.Concat(number(1, typ), raw(2, body)) }

type leaf struct {
	op                      comparator
	column                  string
	value                   any
	filterIfMissing, latest bool
	rule                    []byte // a ValueTransferRule
}

func (l leaf) body() []byte {
	b := slices.Concat(number(1, int64(l.op)), raw(2, []byte(l.column)), raw(3, variant(l.value)),
		number(4, flag(l.filterIfMissing)), number(5, flag(l.latest)))
	if l.rule != nil {
		b = append(b, raw(6, l.rule)...)
	}
	return b
}

func (l leaf) bytes() []byte { return envelope(typeSingle, l.body()) }

func transfer(regex string, cast wire.ValueType) []byte {
	return slices.Concat(raw(1, []byte(regex)), number(2, int64(cast)))
}

func composite(combinator int64, subs ...[]byte) []byte {
	b := number(1, combinator)
	for _, s := range subs {
		b = append(b, raw(2, s)...)
	}
	return envelope(typeComposite, b)
}

func pagination(offset, limit int64) []byte {
	return envelope(typePagination, slices.Concat(number(1, offset), number(2, limit)))
}

func payload(v any) (wire.ValueType, []byte) {
	switch v := v.(type) {
	case int:
		return wire.Integer, binary.LittleEndian.AppendUint64(nil, uint64(v))
	case float64:
		return wire.Double, binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))
	case bool:
		return wire.Boolean, []byte{byte(flag(v))}
	case string:
		return wire.String, []byte(v)
	case []byte:
		return wire.Binary, v
	}
	panic(fmt.Sprintf("no value: %T", v))
}

func variant(v any) []byte {
	typ, b := payload(v)
	head := []byte{byte(typ)}
	if typ == wire.String || typ == wire.Binary {
		head = binary.LittleEndian.AppendUint32(head, uint32(len(b)))
	}
	return append(head, b...)
}

// cells makes cells of alternating names and values. The versions of a column must be given newest first.
func cells(namesAndValues ...any) (list []wire.Cell) {
	for i := 0; i < len(namesAndValues); i += 2 {
		typ, b := payload(namesAndValues[i+1])
		list = append(list, wire.Cell{Name: []byte(namesAndValues[i].(string)), Type: typ, Value: b,
			Timestamp: int64(1000 - i), Stamped: true})
	}
	slices.SortStableFunc(list, func(a, b wire.Cell) int { return bytes.Compare(a.Name, b.Name) })
	return list
}

func decode(t testing.TB, b []byte) *Filter {
	t.Helper()
	f, err := Decode(b)
	conformance.MustEqual(t, err, nil, "%x", b)
	return f
}

func FuzzFilter(f *testing.F) {
	single := leaf{op: greaterEqual, column: "age", value: 18, filterIfMissing: true, latest: true}
	for _, b := range [][]byte{
		single.bytes(), leaf{op: less, column: "name", value: "bob"}.bytes(),
		leaf{op: notEqual, column: "name", value: 1.5, latest: true}.bytes(),
		leaf{op: equal, column: "name", value: true}.bytes(),
		leaf{op: lessEqual, column: "id", value: []byte{0, 255}}.bytes(),
		leaf{op: greater, column: "name", value: 7, rule: transfer(`n=(\d+)`, wire.Integer)}.bytes(),
		leaf{op: existsNot, column: "name", value: 7.5, rule: transfer(`(?i)[a-z]{2,9}|x*`, wire.Double)}.bytes(),
		composite(combineNot, single.bytes()),
		composite(combineAnd, single.bytes(), composite(combineOr, single.bytes(), single.bytes())), pagination(1, 2),
		pagination(-1, 0),
		conformance.Try(hex.DecodeString(
			"0802123a0802121a08011216080412036167651a0900120000000000000020012801121a08011216080112046e616d651a080303000000626f6220002800")).Must(f),
	} {
		f.Add(b, "name", "n=12", int64(18), 1.5)
	}
	f.Fuzz(func(t *testing.T, b []byte, column, text string, n int64, d float64) {
		x, err := Decode(b)
		if err != nil {
			conformance.MustTrue(t, x == nil && err.Status == 400 && err.Message != "", "refused as %v, %+v", x, err)
			_, err := DecodeCondition(b)
			conformance.MustTrue(t, err != nil, "a condition that is no filter")
			return
		}
		if x == nil {
			return // an empty filter
		}
		key := cells("id", []byte(text))
		row := cells(column, text, column, int(n), column, d, "age", int(n), "flag", n > 0, "name", text, "name", int(n))
		passed := x.Match(key, row)
		conformance.MustEqual(t, passed, x.Match(key, row), "whether the same row passes")
		x.Match(nil, nil)
		page := x.Page(row)
		conformance.MustTrue(t, len(page) <= len(row) && (x.page != nil || len(page) == len(row)),
			"%d cells of %d", len(page), len(row))
		conformance.MustTrue(t, len(page) == 0 || bytes.Equal(page[len(page)-1].Name, row[len(row)-1].Name) || x.page != nil,
			"a condition pages")
		if not, err := Decode(composite(combineNot, b)); err == nil && not.Match(key, row) == passed {
			t.Fatal("a filter and its contrary agree")
		} else if err != nil && x.page == nil && err.Message != "The count of filter exceeds the max: 32." {
			t.Fatal(err)
		}
	})
}
