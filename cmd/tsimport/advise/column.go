package advise

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"example.com/tsimport/cmd/tsimport/advise/sketch"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/reader/convert"
	"example.com/tsimport/reader/record"
)

type column struct {
	name    string
	typ     table.Type // type as a key column: integer, string or binary
	own     table.Type // inferred type
	integer bool

	clock clock      // format of the sample's times, if it has any
	book  *codebook  // codes of texts
	texts [][]byte   // sample
	held  int64      // bytes of texts
	kinds sampleKind // kinds of values in the sample

	numbers  bool // most texts of the sample are numbers
	decimals bool // some of these numbers have a decimal point

	rows, nulls, empty int64
	distinct           sketch.Distinct
	top                *sketch.Top
	bytes              int64 // size of all values
	longest            int
	digits             bool   // all texts are digits
	uneven             bool   // texts of digits have different lengths
	zeros              bool   // some texts of digits have a leading zero
	first, last        []byte // first and last of texts that are sortable times
	low, high          int64
	lowByte            byte // lowest byte of any text
	prefix             []byte
	begun              bool

	code, hash, time int // places in kept; -1 if there is none
}

type sampleKind struct {
	times, others int // number of values that the file declares as times, and of others
}

// Limits of the number of sampled texts. Further texts replace earlier ones by reservoir sampling.
const (
	minTexts = 16
	maxTexts = 4096
)

// keptText is the maximum length of a kept text. It suffices for display, codebooks and times.
const keptText = 256

// textBytes is the approximate overhead of a kept text.
const textBytes = 64

func beginning(text []byte) []byte { return text[:min(len(text), keptText)] }

func newColumn(name string) *column {
	return &column{name: name, digits: true, low: math.MaxInt64, high: math.MinInt64, lowByte: 0xff, code: -1,
		hash: -1, time: -1}
}

// sample adds a value to the sample, before the types are known. The texts use up to budget bytes.
func (c *column) sample(d *record.Datum, budget int64) {
	switch d.Kind {
	case record.Null, record.Absent:
		return
	case record.Timestamp, record.Date:
		c.kinds.times++
	default:
		c.kinds.others++
	}
	n := c.kinds.times + c.kinds.others
	if len(c.texts) < minTexts || len(c.texts) < maxTexts && c.held < budget {
		text := bytes.Clone(sampleText(d))
		c.held += int64(len(text)) + textBytes
		c.texts = append(c.texts, text)
	} else if i := sketch.Mix(uint64(n)) % uint64(n); i < uint64(len(c.texts)) {
		c.texts[i] = append(c.texts[i][:0], sampleText(d)...)
	}
}

// sampleText returns the kept part of a value's text. Long texts are cut before they are copied.
func sampleText(d *record.Datum) []byte {
	switch d.Kind {
	case record.Text, record.Number, record.String, record.JSON:
		return beginning(d.Bytes)
	}
	return beginning([]byte(convert.Text(d)))
}

// settle ends the sample. The most frequent values may use up to budget bytes.
func (c *column) settle(t table.Type, budget int64) {
	c.top = sketch.NewTop(int(budget / (keptText + textBytes)))
	c.own, c.typ = t, t
	if !t.KeyType() {
		c.typ = table.String
	}
	c.integer = c.typ == table.Integer
	c.clock = findClock(c)
	if !c.integer {
		c.numbers, c.decimals = numberTexts(c.texts)
	}
}

// endSample makes the codebook of a column that has a place in kept, and frees the sample.
func (c *column) endSample() {
	if !c.integer && c.code >= 0 {
		c.book = newCodebook(c.texts)
	}
	c.texts = nil
}

// numberTexts reports whether at least four in five texts are numbers, and whether any has a decimal point.
func numberTexts(texts [][]byte) (numbers, decimals bool) {
	n := 0
	for _, t := range texts {
		if _, err := strconv.ParseFloat(string(t), 64); err == nil {
			n++
			decimals = decimals || bytes.IndexByte(t, '.') >= 0
		}
	}
	numbers = n > 0 && 5*n >= 4*len(texts)
	return numbers, numbers && decimals
}

// floating reports whether the values are doubles or booleans. As keys they would be texts without a useful order.
func (c *column) floating() bool { return c.own == table.Double || c.own == table.Boolean }

func (c *column) see(v *table.Value, keep *kept, count bool) {
	if c.floating() {
		if v.Type == table.Null {
			c.nulls++
		}
		return
	}
	var code, hash uint64
	switch {
	case v.Type == table.Null:
		c.nulls++
		c.store(keep, 0, 0, nil)
		return
	case c.integer:
		code = uint64(v.Int) ^ 1<<63
		hash = sketch.Mix(code)
		c.low, c.high = min(c.low, v.Int), max(c.high, v.Int)
		c.bytes += 8
		c.longest = 8
		if count && !c.top.Known(hash) {
			c.top.Add(hash, strconv.AppendInt(nil, v.Int, 10))
		}
	default:
		text := textOf(v)
		hash = sketch.Hash(text)
		c.look(text)
		if count {
			c.top.Add(hash, beginning(text))
		}
		if keep != nil && c.code >= 0 {
			code = c.book.code(text)
			c.store(keep, code, hash, text)
			keep = nil
		}
	}
	c.rows++
	c.distinct.Add(hash)
	c.store(keep, code, hash, nil)
}

func (c *column) look(text []byte) {
	n := len(text)
	if n == 0 {
		c.empty++
		c.digits = false
	}
	if !c.begun {
		c.begun = true
		c.prefix = bytes.Clone(beginning(text))
	} else {
		c.uneven = c.uneven || n*int(c.rows) != int(c.bytes)
		same := 0
		for same < len(c.prefix) && same < n && c.prefix[same] == text[same] {
			same++
		}
		c.prefix = c.prefix[:same]
	}
	c.bytes += int64(n)
	c.longest = max(c.longest, n)
	for _, b := range text {
		c.lowByte = min(c.lowByte, b)
		c.digits = c.digits && b >= '0' && b <= '9'
	}
	c.zeros = c.zeros || n > 1 && text[0] == '0'
	if c.clock.period == "" || n == 0 {
		return
	}
	if c.first == nil || bytes.Compare(text, c.first) < 0 {
		c.first = append(c.first[:0], text...)
	}
	if bytes.Compare(text, c.last) > 0 {
		c.last = append(c.last[:0], text...)
	}
}

func (c *column) store(keep *kept, code, hash uint64, text []byte) {
	if keep == nil || c.code < 0 {
		return
	}
	keep.add(c.code, code)
	if c.hash >= 0 {
		keep.add(c.hash, hash)
	}
	if c.time >= 0 {
		keep.add(c.time, c.clock.parse(text))
	}
}

// textOf returns a value's text in a string key column. It allocates only for values of other types, which are rare.
func textOf(v *table.Value) []byte {
	switch v.Type {
	case table.Integer:
		return strconv.AppendInt(nil, v.Int, 10)
	case table.Double:
		return table.AppendDouble(nil, v.Double)
	case table.Boolean:
		return strconv.AppendBool(nil, v.Int != 0)
	}
	return v.Bytes
}

// identity returns the place in kept that distinguishes the column's values.
func (c *column) identity() int {
	if c.hash >= 0 {
		return c.hash
	}
	return c.code
}

func shown(text []byte) string {
	const most = 60
	runes := []rune(string(text))
	if len(runes) > most {
		runes = append(runes[:most], '…')
	}
	return string(runes)
}

func times(growth float64) string {
	if growth == float64(int64(growth)) {
		return words.Grouped(int64(growth))
	}
	return strconv.FormatFloat(growth, 'f', -1, 64)
}

func percent(share float64) string {
	switch {
	case share >= 0.995:
		return "100 %"
	case share >= 0.1:
		return fmt.Sprintf("%.0f %%", 100*share)
	case share >= 0.001:
		return fmt.Sprintf("%.1f %%", 100*share)
	case share > 0:
		return "under 0.1 %"
	}
	return "0 %"
}
