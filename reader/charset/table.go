package charset

import (
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
)

// table holds every character of an encoding by its bytes, as decoded by x/text.
type table struct {
	name   string
	single [256]rune         // by byte; none if the byte is not a character
	pairs  []rune            // by (first-0x80)<<8 | second; nil for a single-byte encoding
	wide   map[uint16]string // pairs that stand for two code points (Big5)
	triple []rune            // after 0x8F (EUC-JP), by (second-0x80)<<8 | third
	four   []rune            // four-byte GB18030 characters in the BMP, by linear index
	ascii  bool              // whether bytes below 0x80 are ASCII
	trail  [256]bool         // by byte: whether it can be a character's second or later byte
}

const (
	none  rune = -1
	twice rune = -2 // two code points, listed in wide
)

// Linear indexes in GB18030: gbPlanes is U+10000, gbEnd follows U+10FFFF, gbBMP follows U+FFFF.
const (
	gbBMP    = 39420
	gbPlanes = 189000
	gbEnd    = gbPlanes + 0x100000
)

// newTable makes the table of enc; nil means US-ASCII.
func newTable(name string, enc encoding.Encoding) *table {
	t := &table{name: name, ascii: true}
	ask := func(seq ...byte) string { return "" }
	if enc != nil {
		decoder := enc.NewDecoder()
		var out [64]byte
		ask = func(seq ...byte) string {
			decoder.Reset()
			n, read, err := decoder.Transform(out[:], seq, true)
			if err != nil || read != len(seq) {
				return ""
			}
			return string(out[:n])
		}
	}
	multi := false
	for b := range 256 {
		t.single[b] = one(ask(byte(b)))
		if enc == nil && b < 0x80 {
			t.single[b] = rune(b)
		}
		if b < 0x80 && t.single[b] != rune(b) {
			t.ascii = false
		}
		multi = multi || b >= 0x80 && t.single[b] == none
	}
	if enc != nil && multi {
		t.addPairs(ask)
		t.addTriples(ask)
		t.addFours(ask)
	}
	return t
}

// one returns the character in s, or none if s is not one character or is U+FFFD.
func one(s string) rune {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 || n != len(s) || r == utf8.RuneError {
		return none
	}
	return r
}

func (t *table) addPairs(ask func(...byte) string) {
	pairs := make([]rune, 0x80<<8)
	found := false
	for i := range pairs {
		a, b := byte(i>>8)+0x80, byte(i)
		pairs[i] = none
		if t.single[a] != none {
			continue
		}
		s := ask(a, b)
		if r := one(s); r != none {
			pairs[i] = r
		} else if n := utf8.RuneCountInString(s); n == 2 && !strings.ContainsRune(s, utf8.RuneError) {
			if t.wide == nil {
				t.wide = map[uint16]string{}
			}
			pairs[i] = twice
			t.wide[uint16(a)<<8|uint16(b)] = s
		}
		if pairs[i] != none {
			t.trail[b] = true
			found = true
		}
	}
	if found {
		t.pairs = pairs
	}
}

func (t *table) addTriples(ask func(...byte) string) {
	if t.single[0x8F] != none || one(ask(0x8F, 0xB0, 0xA1)) == none {
		return
	}
	t.triple = make([]rune, 0x80<<8)
	for i := range t.triple {
		b, c := byte(i>>8)+0x80, byte(i)
		t.triple[i] = none
		if t.pairs[0xF<<8|int(b)] != none {
			continue
		}
		if r := one(ask(0x8F, b, c)); r != none {
			t.triple[i] = r
			t.trail[b], t.trail[c] = true, true
		}
	}
}

func (t *table) addFours(ask func(...byte) string) {
	if one(ask(0x90, 0x30, 0x81, 0x30)) != 0x10000 {
		return
	}
	t.four = make([]rune, gbBMP)
	for i := range t.four {
		t.four[i] = one(ask(byte(i/12600)+0x81, byte(i/1260%10)+0x30, byte(i/10%126)+0x81, byte(i%10)+0x30))
	}
	t.four[gbBMP-1-2] = utf8.RuneError // 84 31 A4 37 is U+FFFD itself
	t.addUserDefined()
	t.addLastPairs()
	for b := 0x30; b <= 0x39; b++ {
		t.trail[b] = true
	}
	for b := 0x81; b <= 0xFE; b++ {
		t.trail[b] = true
	}
}

// addUserDefined adds GB18030's three user-defined areas, U+E000 to U+E765, which x/text lacks but other systems use.
func (t *table) addUserDefined() {
	r := rune(0xE000)
	for _, area := range [...][4]int{{0xAA, 0xAF, 0xA1, 0xFE}, {0xF8, 0xFE, 0xA1, 0xFE}, {0xA1, 0xA7, 0x40, 0xA0}} {
		for a := area[0]; a <= area[1]; a++ {
			for b := area[2]; b <= area[3]; b++ {
				if b == 0x7F {
					continue
				}
				if i := (a-0x80)<<8 | b; t.pairs[i] == none {
					t.pairs[i] = r
				}
				r++
			}
		}
	}
}

// addLastPairs adds the pairs that x/text lacks. 174 were in the private use area, in the order of the pairs; some
// became characters in GB 18030-2022 (https://encoding.spec.whatwg.org/#index-gb18030).
func (t *table) addLastPairs() {
	since := map[int]rune{
		0xA6D9: 0xFE10, 0xA6DA: 0xFE12, 0xA6DB: 0xFE11, 0xA6DC: 0xFE13, 0xA6DD: 0xFE14, 0xA6DE: 0xFE15, 0xA6DF: 0xFE16,
		0xA6EC: 0xFE17, 0xA6ED: 0xFE18, 0xA6F3: 0xFE19, 0xFE59: 0x9FB4, 0xFE61: 0x9FB5, 0xFE66: 0x9FB6, 0xFE67: 0x9FB7,
		0xFE6D: 0x9FB8, 0xFE7E: 0x9FB9, 0xFE90: 0x9FBA, 0xFEA0: 0x9FBB,
	}
	known := map[rune]bool{}
	for _, r := range slices.Concat(t.pairs, t.four) {
		known[r] = true
	}
	private := rune(0xE766)
	for i, r := range t.pairs {
		code := i + 0x8000
		if trail := code & 0xFF; r != none || code < 0x8140 || code > 0xFEFE || trail < 0x40 || trail == 0x7F ||
			trail == 0xFF {
			continue
		}
		for known[private] {
			private++
		}
		t.pairs[i] = private
		if r, ok := since[code]; ok {
			t.pairs[i] = r
		}
		private++
	}
}

// next decodes the first character of src, which must not be empty. n is 0 if it is invalid. If r is twice, see wide.
func (t *table) next(src []byte) (r rune, n int) {
	a := src[0]
	if r = t.single[a]; r != none {
		return r, 1
	}
	if len(src) < 2 || a < 0x80 || t.pairs == nil {
		return none, 0
	}
	b := src[1]
	if r = t.pairs[int(a-0x80)<<8|int(b)]; r != none {
		return r, 2
	}
	if t.triple != nil && a == 0x8F && b >= 0x80 && len(src) >= 3 {
		if r = t.triple[int(b-0x80)<<8|int(src[2])]; r != none {
			return r, 3
		}
	}
	if t.four != nil && len(src) >= 4 {
		if r = t.gb(src[:4]); r != none {
			return r, 4
		}
	}
	return none, 0
}

func (t *table) gb(s []byte) rune {
	a, b, c, d := int(s[0])-0x81, int(s[1])-0x30, int(s[2])-0x81, int(s[3])-0x30
	if a < 0 || a > 125 || b < 0 || b > 9 || c < 0 || c > 125 || d < 0 || d > 9 {
		return none
	}
	i := ((a*10+b)*126+c)*10 + d
	switch {
	case i < gbBMP:
		return t.four[i]
	case i >= gbPlanes && i < gbEnd:
		return rune(i - gbPlanes + 0x10000)
	}
	return none
}
