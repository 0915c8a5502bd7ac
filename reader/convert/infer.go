package convert

import (
	"bytes"
	"math"
	"slices"
	"unicode/utf8"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// Inference infers the types of a source's columns from sampled records. A text column gets a type other than string
// only if every sampled value is the canonical text of that type: 007, +5, 1e3 and 10.50 remain strings, as a number
// would not reproduce them. Values typed by the file keep their type; texts among them get it if all survive.
type Inference struct {
	columns   []columnGuess
	converter *Converter

	// State of the last record passed to Texts.
	decoded []record.Datum // its decoded texts, if options can change texts
	counts  bool           // whether it has one field per column
}

// number is the numeric value of a text, if known, or the nearest double for an integer that is not exact as a double.
type number struct {
	value float64
	known bool
}

// columnGuess counts a column's non-null values by type.
type columnGuess struct {
	usual                    usual
	text                     tally // all untyped texts
	integer, double, boolean tally // values that are not of that type
	decimal                  tally // texts that are not plain decimal numbers such as 10.50
	fraction                 bool  // whether some text has a fractional part, as 2.5 but not 2.0
	own                      [table.Any + 1]tally
	large                    bool  // whether some integer is not exact as a double
	long                     tally // numbers that are neither 64-bit integers nor doubles
	null                     bool  // whether a typed file had a null
}

// tally counts values and keeps some examples.
type tally struct {
	n        int
	examples []string
	last     []byte // the last example, not shortened
	most     bool   // counting has stopped because most texts were counted: each costs an allocation
}

func (t *tally) add(text []byte) {
	if t.n++; len(t.examples) == maxExamples || len(t.last) > 0 && bytes.Equal(t.last, text) {
		return
	}
	t.last = append(t.last[:0], text...) // a repeated value costs nothing
	if shown := table.Show(text); !slices.Contains(t.examples, shown) {
		t.examples = append(t.examples, shown)
	}
}

const maxExamples = 3

// NewInference starts an inference for n columns. The options define nulls, trimming and decoding.
func NewInference(n int, o Options) *Inference {
	in := &Inference{columns: make([]columnGuess, n)}
	o.VersionColumn = ""
	in.converter, _ = New(nil, nil, o) // cannot fail: there are no columns
	return in
}

// Add adds a record to the sample, unless the record will be rejected.
func (in *Inference) Add(rec *record.Record) {
	if rec.Bad != nil || len(rec.Fields)-rec.Short != len(in.columns) {
		return
	}
	for i := range rec.Fields {
		in.columns[i].add(in.converter, &rec.Fields[i])
	}
}

// AddField adds field i of the record prepared by Texts. It returns the value, or nil for null, and its number, if any.
func (in *Inference) AddField(i int, rec *record.Record) (d *record.Datum, n float64, isNumber bool) {
	d = &rec.Fields[i]
	c := in.converter
	if d.Kind != record.Text {
		if in.counts {
			in.columns[i].addTyped(c, d)
		}
		if d.None() {
			return nil, 0, false
		}
		n, isNumber = Number(d)
		return d, n, isNumber
	}
	if !c.asItIs {
		if d = &in.decoded[i]; d.Kind == record.Null {
			return nil, 0, false
		}
	} else if (len(d.Bytes) == 0 || d.Quoted || len(c.nulls) > 0) && c.isNull(d) {
		return nil, 0, false
	}
	if in.counts {
		g := &in.columns[i]
		if n, isNumber, known := g.addUsual(d.Bytes); known {
			return d, n, isNumber
		}
		if n := g.addText(c, d); n.known {
			return d, n.value, true
		}
	}
	n, isNumber = Number(d)
	return d, n, isNumber
}

func (g *columnGuess) add(c *Converter, d *record.Datum) {
	c.scratch = c.scratch[:0]
	if d.Kind != record.Text {
		g.addTyped(c, d)
	} else if len(d.Bytes) > 0 && c.asItIs && len(c.nulls)+len(c.o.QuotedNulls) == 0 && g.isUsual(d.Bytes) {
		return
	} else if t, why := c.text(d); why == nil && t.Kind != record.Null {
		g.addText(c, &t)
	}
}

func (g *columnGuess) addTyped(c *Converter, d *record.Datum) {
	if d.None() {
		g.null = true
		return
	}
	own := Natural(d)
	if own == table.String && (d.Kind == record.Number || d.Kind == record.Unsigned) {
		g.long.add(appendText(nil, d))
		return
	}
	var v table.Value
	g.large = g.large || own == table.Integer && c.doubleValue(&v, d, false) != nil
	if t := &g.own[own]; t.n >= maxExamples {
		t.n++
	} else {
		t.add(appendText(nil, d))
	}
}

// addUsual is like addText, but does nothing unless the text is of the usual kind, which ok reports.
func (g *columnGuess) addUsual(text []byte) (n float64, isNumber, ok bool) {
	switch g.usual {
	case usualString:
		ok = true
	case usualInteger:
		var whole int64
		whole, ok = usualWhole(text)
		n, isNumber = float64(whole), true
	case usualDouble:
		n, isNumber, ok = plainDecimal(text)
		ok = ok && isNumber
		g.fraction = g.fraction || n != math.Trunc(n)
	}
	if ok {
		g.text.n++
	}
	return n, isNumber, ok
}

// isUsual is like addUsual, but does not return the number.
func (g *columnGuess) isUsual(text []byte) bool {
	_, _, ok := g.addUsual(text)
	return ok
}

func (g *columnGuess) settleUsual() {
	switch {
	case !g.boolean.most:
	case g.integer.n == 0:
		g.usual = usualInteger
	case g.integer.most && g.double.n == 0:
		g.usual = usualDouble
	case g.integer.most && g.double.most && g.decimal.most:
		g.usual = usualString
	default:
		g.usual = unusual
	}
}

// addText counts a text and returns its number, if it was parsed as one.
func (g *columnGuess) addText(c *Converter, t *record.Datum) (n number) {
	var v table.Value
	g.text.n++
	whole := false // whether it is an integer with the same text as a double
	if !g.integer.most {
		if parseInteger(&v, t.Bytes, true) == nil {
			whole = -1e15 < v.Int && v.Int < 1e15
			n = number{float64(v.Int), true}
		} else {
			g.integer.miss(t.Bytes, g.text.n)
		}
	}
	switch {
	case whole: // with up to 15 digits, a double has the same text
	case g.double.most && g.decimal.most:
	case c.parseDouble(&v, t.Bytes, true) == nil:
		n = number{v.Double, true}
		g.fraction = g.fraction || v.Double != math.Trunc(v.Double)
	default:
		g.double.miss(t.Bytes, g.text.n)
		if !g.decimal.most && !(PlainNumber(t.Bytes) && c.parseDouble(&v, t.Bytes, false) == nil) {
			g.decimal.miss(t.Bytes, g.text.n)
		}
	}
	if !g.boolean.most && booleanValue(&v, t, true) != nil {
		g.boolean.miss(t.Bytes, g.text.n)
	}
	g.settleUsual()
	return n
}

// miss counts one of n texts, which does not have the tally's type.
func (t *tally) miss(text []byte, n int) {
	t.add(text)
	t.most = t.n >= 64 && 2*t.n > n
}

// Plain returns a datum as it is counted: its text trimmed and decoded, or Null. It is valid until the next call.
func (in *Inference) Plain(d *record.Datum) *record.Datum {
	if d.Kind != record.Text {
		return d
	}
	in.converter.scratch = in.converter.scratch[:0]
	t, why := in.converter.text(d)
	if why != nil {
		return d
	}
	return &t
}

// Texts prepares rec for AddField. It returns the index of the first field that cannot be decoded, and why.
func (in *Inference) Texts(rec *record.Record) (field int, why *table.Reason) {
	c := in.converter
	in.counts = len(rec.Fields)-rec.Short == len(in.columns)
	if rec.ASCII && c.asItIs {
		return 0, nil
	}
	c.scratch = c.scratch[:0]
	if len(in.decoded) < len(rec.Fields) {
		in.decoded = make([]record.Datum, len(rec.Fields))
	}
	for i := range rec.Fields {
		t := &rec.Fields[i]
		switch {
		case t.Kind != record.Text:
		case !c.asItIs:
			if in.decoded[i], why = c.text(t); why != nil {
				return i, why
			}
			t = &in.decoded[i]
		case c.isNull(t):
			continue
		}
		if (t.Kind == record.Text || t.Kind == record.String) && !utf8.Valid(t.Bytes) {
			return i, c.notUTF8(t.Bytes)
		}
	}
	return 0, nil
}

// Type returns column i's type: Any for several types or only nulls of a typed file, string for no value at all.
func (in *Inference) Type(i int) table.Type {
	g := &in.columns[i]
	switch {
	case !g.typed() && g.text.n == 0 && g.null:
		return table.Any
	case !g.typed() && g.text.n == 0:
		return table.String
	case !g.typed():
		return g.textType()
	case g.long.n > 0 && g.allTaken(table.Double):
		return table.String // so that all its values have one type
	}
	for _, t := range []table.Type{table.Integer, table.Double, table.Boolean, table.String, table.Binary} {
		if g.allTaken(t) && g.texts(t) == g.text.n && !(t == table.Double && g.large) {
			return t
		}
	}
	return table.Any
}

// texts returns how many counted texts survive as type t, apart from trailing zeros of decimals.
func (g *columnGuess) texts(t table.Type) int {
	switch t {
	case table.Integer:
		return g.text.n - g.integer.n
	case table.Double:
		return g.text.n - g.decimal.n
	case table.Boolean:
		return g.text.n - g.boolean.n
	case table.String:
		return g.text.n
	}
	return 0
}

// Joins reports whether column i has both texts and typed values. Trailing zeros of decimals are then ignored.
func (in *Inference) Joins(i int) bool { return in.columns[i].typed() && in.columns[i].text.n > 0 }

// KeyType returns the type of a key column of a new table. If no key type takes all values, t is the type of most
// values, mixed is true, and few counts the others, which will be rejected.
func (in *Inference) KeyType(i int) (t table.Type, few Minority, mixed bool) {
	g := &in.columns[i]
	if t = in.Type(i); t.KeyType() {
		return t, few, false
	}
	total := g.text.n + g.long.n
	for k := range g.own {
		total += g.own[k].n
	}
	few.Type, few.Most = table.String, g.own[table.String].n+g.texts(table.String)
	for _, k := range []table.Type{table.Integer, table.Binary} {
		if n := g.own[k].n + g.texts(k); n > few.Most || n == few.Most && k == table.Integer {
			few.Type, few.Most = k, n
		}
	}
	few.Others = total - few.Most
	numbers := g.allTaken(table.Double) && g.texts(table.Double) == g.text.n // as strings, all survive
	if !g.typed() || few.Most == 0 || few.Others == 0 || t == table.Boolean || numbers &&
		few.Others*minorityShare > total {
		return table.String, Minority{}, false
	}
	few.Examples = g.examples(few.Type)
	return few.Type, few, true
}

// examples returns values that a column of type t would reject.
func (g *columnGuess) examples(t table.Type) []string {
	all := slices.Clone(g.long.examples)
	switch t {
	case table.Integer:
		all = append(all, g.integer.examples...)
	case table.Binary:
		all = append(all, g.text.examples...)
	}
	for k := range g.own {
		if k := table.Type(k); k != t && (k != table.Integer || t != table.Double || g.large) {
			all = append(all, g.own[k].examples...)
		}
	}
	return all[:min(len(all), maxExamples)]
}

// Numbers reports whether all texts in column i are doubles, but some, such as example, are not canonical.
func (in *Inference) Numbers(i int) (example string, ok bool) {
	g := &in.columns[i]
	switch {
	case g.typed() || g.text.n == 0 || g.integer.n == 0:
		return "", false
	case g.double.n > 0 && g.decimal.n == 0:
		return g.double.examples[0], true
	case g.double.n == 0 && !g.fraction:
		return g.integer.examples[0], true
	}
	return "", false
}

// Merge adds another inference about the same columns. The order of merging affects only the examples.
func (in *Inference) Merge(o *Inference) {
	for i := range in.columns {
		g, h := &in.columns[i], &o.columns[i]
		all := h.text.n
		for _, pair := range [][2]*tally{{&g.integer, &h.integer}, {&g.double, &h.double}, {&g.decimal, &h.decimal},
			{&g.boolean, &h.boolean}} {
			if pair[1].most { // further texts were not counted
				pair[1].n = all
			}
			pair[0].merge(pair[1])
		}
		g.text.merge(&h.text)
		g.long.merge(&h.long)
		for k := range g.own {
			g.own[k].merge(&h.own[k])
		}
		g.fraction, g.large, g.null = g.fraction || h.fraction, g.large || h.large, g.null || h.null
	}
}

func (t *tally) merge(o *tally) {
	t.n += o.n
	for _, text := range o.examples {
		if len(t.examples) < maxExamples && !slices.Contains(t.examples, text) {
			t.examples = append(t.examples, text)
		}
	}
}

// typed reports whether any of the column's values have a type in the file.
func (g *columnGuess) typed() bool {
	_, kinds := g.ownType()
	return kinds > 0 || g.long.n > 0
}

// allTaken reports whether a column of type own accepts all typed values.
func (g *columnGuess) allTaken(own table.Type) bool {
	for t := range g.own {
		if g.own[t].n > 0 && !takes(own, table.Type(t), false) {
			return false
		}
	}
	return g.long.n == 0 || own != table.Integer && takes(own, table.String, true)
}

// Own returns table.Column.Own for column i, loaded as type t: the type that its values have in the file if they all
// have one, else t. For Any, it is the type of texts among typed values. Integers and doubles count as one type.
func (in *Inference) Own(i int, t table.Type) table.Type {
	g := &in.columns[i]
	if t == table.Any && g.typed() && g.text.n > 0 {
		return g.textType()
	}
	if t == table.Any || !g.typed() || t != table.String && g.allTaken(t) {
		return t
	}
	for _, own := range []table.Type{table.Double, table.Boolean, table.String, table.Binary} {
		if g.allTaken(own) && !(own == table.Double && t == table.Integer) {
			return own
		}
	}
	return t
}

// ownType returns the type of the values in the file, and how many types they have; integers and doubles are doubles.
func (g *columnGuess) ownType() (own table.Type, kinds int) {
	for t := range g.own {
		if g.own[t].n > 0 && (table.Type(t) != table.Integer || g.own[table.Double].n == 0) {
			own = table.Type(t)
			kinds++
		}
	}
	return own, kinds
}

func (g *columnGuess) textType() table.Type {
	switch {
	case g.integer.n == 0:
		return table.Integer
	case g.double.n == 0:
		return table.Double
	case g.boolean.n == 0:
		return table.Boolean
	}
	return table.String
}

// Seen reports whether the sample has a non-null value in column i.
func (in *Inference) Seen(i int) bool {
	return in.columns[i].typed() || in.columns[i].text.n > 0
}

// Fits reports whether all sampled values of column i fit type t. Texts must be canonical apart from trailing zeros.
func (in *Inference) Fits(i int, t table.Type) bool {
	g := &in.columns[i]
	own, kinds := g.ownType()
	if kinds > 1 || g.long.n > 0 && t != table.String || kinds == 1 && own != t &&
		!(t == table.Double && own == table.Integer && !g.large) {
		return false
	}
	if kinds == 1 && own == table.Double && g.own[table.Integer].n > 0 && g.large {
		return false
	}
	return g.texts(t) == g.text.n
}

// Minority describes a column in which nearly all values have one type.
type Minority struct {
	Type     table.Type // of most values
	Most     int
	Others   int
	Examples []string // of the other values
}

// Nearly all means: of at least minorityLeast values, at most one in minorityShare has another type.
const (
	minorityShare = 10
	minorityLeast = 10
)

// Minority returns the type of column i if only few values have another. If zeros is set, trailing zeros do not matter.
func (in *Inference) Minority(i int, zeros bool) (m Minority, ok bool) {
	g := &in.columns[i]
	double := &g.double
	if zeros {
		double = &g.decimal
	}
	total, others := g.text.n, (*tally)(nil)
	if g.typed() {
		if g.text.n > 0 && in.Type(i) != table.Any {
			return m, false // all texts survive as that type
		}
		return g.ownMinority()
	}
	for _, c := range []struct {
		t table.Type
		n *tally
	}{{table.Integer, &g.integer}, {table.Double, double}, {table.Boolean, &g.boolean}} {
		if c.n.n == 0 {
			return m, false // all values have that type
		}
		if !c.n.most && (others == nil || c.n.n < others.n) {
			m.Type, others = c.t, c.n
		}
	}
	if others == nil {
		return m, false
	}
	m.Most, m.Others, m.Examples = total-others.n, others.n, others.examples
	return m, total >= minorityLeast && m.Others*minorityShare <= total
}

func (g *columnGuess) ownMinority() (m Minority, ok bool) {
	own, n := table.Null, 0
	total := g.text.n + g.long.n
	for t := range g.own {
		total += g.own[t].n
		if g.own[t].n > n {
			own, n = table.Type(t), g.own[t].n
		}
	}
	n += g.texts(own)
	if own == table.Double && !g.large {
		n += g.own[table.Integer].n
	}
	m = Minority{Type: own, Most: n, Others: total - n, Examples: g.examples(own)}
	return m, m.Others > 0 && own != table.Null && total >= minorityLeast && m.Others*minorityShare <= total
}

// PlainNumber reports whether text is a decimal number without a plus sign or leading zeros: 10.50, but not 007.
func PlainNumber(text []byte) bool {
	whole, fraction, point := bytes.Cut(bytes.TrimPrefix(text, []byte("-")), []byte("."))
	return allDigits(whole) && (len(whole) == 1 || whole[0] != '0') && (!point || allDigits(fraction))
}

func allDigits(text []byte) bool { return len(text) > 0 && len(bytes.Trim(text, "0123456789")) == 0 }
