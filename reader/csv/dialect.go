package csv

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Dialect says how a text is read. The zero value is not usable; begin with Default.
type Dialect struct {
	Delimiter string // between fields, one or several bytes
	Quote     byte   // around fields that hold delimiters, quotes or line ends; 0 is none
	// Escape makes the byte behind it text, inside and outside quotes; 0 is none. A quote inside quotes is doubled
	// either way.
	Escape  byte
	Comment string // lines that begin with it are no records; empty is none
	// EOL ends a record: LF, before which a CR belongs to the line end, or CR. 0 is LF.
	EOL byte
}

// Default is RFC 4180: commas and double quotes.
var Default = Dialect{Delimiter: ",", Quote: '"', EOL: '\n'}

// Check returns why the dialect cannot be read.
func (d *Dialect) Check() error {
	switch {
	case d.Delimiter == "":
		return errors.New("the delimiter is empty")
	case d.Quote != 0 && d.Quote == d.Delimiter[0]:
		return fmt.Errorf("quote and delimiter both begin with %q", d.Quote)
	case d.Escape != 0 && (d.Escape == d.Quote || d.Escape == d.Delimiter[0]):
		return fmt.Errorf("the escape character %q has another meaning already", d.Escape)
	}
	for _, c := range []byte(d.Delimiter + string([]byte{d.Quote, d.Escape}) + d.Comment) {
		if c == '\n' || c == '\r' {
			return errors.New("a line end cannot be part of a delimiter, quote, escape character or comment mark")
		}
	}
	return nil
}

// Unescape reads a delimiter as users write it: \t is a tab, \x01 the byte 1.
func Unescape(text string) (string, error) {
	if !strings.Contains(text, `\`) || text == `\` {
		return text, nil
	}
	plain, err := strconv.Unquote(`"` + strings.ReplaceAll(text, `"`, `\"`) + `"`)
	if err != nil {
		return "", fmt.Errorf("%q: want characters, \\t or \\x01", text)
	}
	return plain, nil
}

func (d *Dialect) eol() byte {
	if d.EOL == 0 {
		return '\n'
	}
	return d.EOL
}

// Parallel reports whether chunks of the text can be scanned before those in front of them. Comments, escapes and long
// delimiters would multiply the states a chunk can begin in; such texts are scanned in order.
func (d *Dialect) Parallel() bool {
	return len(d.Delimiter) == 1 && d.Escape == 0 && d.Comment == ""
}

// simple reports whether records are read by the fast parser.
func (d *Dialect) simple() bool { return d.Parallel() }
