package keyexpr

import (
	"fmt"
	"unicode/utf8"
)

// SeparatorChooser finds a separator for splice(auto, …): one that sorts below every character of the values it has
// been shown. It looks at a sample, so a later value may still have a lower character; its row is then rejected like
// any other that would break the order. The zero value is ready.
type SeparatorChooser struct {
	seen   bool
	lowest byte
}

// separators are the candidates: the vendor's own, one below nearly every other that can be seen, and then characters
// below the space.
var separators = []rune{',', '!', '\x1f', '\t', '\x01'}

// Observe takes note of the characters of a value. The lowest byte of UTF-8 text is that of its lowest character if
// that is ASCII, which is all that counts here.
func (c *SeparatorChooser) Observe(text []byte) {
	for _, b := range text {
		if !c.seen || b < c.lowest {
			c.seen, c.lowest = true, b
		}
	}
}

// Choose returns the separator, or why there is none.
func (c *SeparatorChooser) Choose() (rune, error) {
	if !c.seen {
		return separators[0], nil
	}
	for _, r := range separators {
		if c.lowest >= utf8.RuneSelf || rune(c.lowest) > r {
			return r, nil
		}
	}
	return 0, fmt.Errorf("splice(auto, …): the values have the character %q, and no separator sorts below it; hash such a column, e.g. md5(x, 8), or leave it out", rune(c.lowest))
}
