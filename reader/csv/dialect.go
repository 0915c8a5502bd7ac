package csv

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"example.com/tsimport/reader/record"
)

// Dialect is a format of delimited text. Start from Default or Named. Dialects can be compared with ==.
type Dialect struct {
	// Name is the program that wrote the text (see Named); empty for a dialect that flags describe completely.
	Name      string `json:",omitempty"`
	Delimiter string // separates fields; one or more bytes
	Quote     byte   // encloses fields that contain delimiters, quotes or line ends; 0 for none
	// Escape begins an escape sequence, inside and outside quotes; 0 for none. Inside quotes, quotes may still be doubled.
	Escape  byte
	Comment string // lines that begin with it are not records; empty for none
	// EOL is the last byte of a record end: LF, with all CRs before it, or CR. 0 means LF.
	EOL byte
	// RecordEnd, if set, is used instead of EOL and must match exactly: a CR before it is data.
	RecordEnd string  `json:",omitempty"`
	Escapes   Escapes `json:",omitempty"` // meaning of escape sequences
	Null      string  `json:",omitempty"` // raw text of an unquoted field that means null
	// Doubt is a raw text that may or may not mean null. Records with such a field are rejected.
	Doubt   string `json:",omitempty"`
	EndMark string `json:",omitempty"` // a line that ends the data and is not a record
	Blank   bool   `json:",omitempty"` // an empty line is a record with one empty field
	Trim    bool   `json:",omitempty"` // blanks around quotes belong to the delimiter
	Typed   bool   `json:",omitempty"` // quoted fields are strings, X'…' is binary, other fields are numbers
	Types   Types  `json:",omitempty"` // whether types follow the header
}

// Types says whether the record after the header contains types.
type Types uint8

const (
	NoTypes   Types = iota // the record is data
	FindTypes              // the record may contain ClickHouse types
	WithTypes              // the record contains types
)

// Default is the dialect of RFC 4180: commas and double quotes.
var Default = Dialect{Delimiter: ",", Quote: '"', EOL: '\n'}

// Check returns why text in the dialect cannot be read, or nil.
func (d *Dialect) Check() error {
	switch {
	case d.Delimiter == "":
		return errors.New("the delimiter is empty")
	case d.Quote != 0 && d.Quote == d.Delimiter[0]:
		return fmt.Errorf("quote and delimiter both begin with %q", d.Quote)
	case d.Escape != 0 && (d.Escape == d.Quote || d.Escape == d.Delimiter[0]):
		return fmt.Errorf("the escape character %q already has another meaning", d.Escape)
	case d.Escapes != EscapesText && isAlphanumeric(d.Delimiter[0]):
		return fmt.Errorf("the delimiter %q may be part of an escape sequence", d.Delimiter)
	}
	if d.RecordEnd != "" {
		return d.checkRecordEnd()
	}
	for _, c := range []byte(d.Delimiter + string([]byte{d.Quote, d.Escape}) + d.Comment) {
		if c == '\n' || c == '\r' {
			return errors.New("a line end cannot be part of a delimiter, quote, escape character or comment mark")
		}
	}
	return nil
}

func (d *Dialect) checkRecordEnd() error {
	first := d.RecordEnd[0]
	switch {
	case first == d.Quote || first == d.Escape:
		return fmt.Errorf("the record end %q begins with the quote or the escape character", d.RecordEnd)
	case strings.Contains(d.Delimiter, d.RecordEnd) || strings.HasPrefix(d.Comment, d.RecordEnd):
		return fmt.Errorf("the record end %q is also part of the delimiter or begins the comment mark", d.RecordEnd)
	case d.Escapes != EscapesText && isAlphanumeric(first):
		return fmt.Errorf("the record end %q may be part of an escape sequence", d.RecordEnd)
	}
	return nil
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// Unescape decodes a delimiter given by a user: \t is a tab, \x01 the byte 1.
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

// escaped encodes a delimiter for Unescape.
func escaped(text string) string {
	if text == `\` {
		return text
	}
	quoted := strconv.QuoteToASCII(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// Flags returns the command-line arguments that select the dialect, apart from --trim.
func (d *Dialect) Flags() []string {
	one := func(c byte) string {
		if c == 0 {
			return "none"
		}
		return escaped(string([]byte{c}))
	}
	var flags []string
	if d.Name != "" {
		flags = append(flags, "--dialect", d.Name)
	}
	flags = append(flags, "--delimiter", escaped(d.Delimiter), "--quote", one(d.Quote), "--escape", one(d.Escape))
	if d.Comment != "" {
		flags = append(flags, "--comment", d.Comment)
	}
	if d.RecordEnd != "" || d.eol() == '\r' {
		flags = append(flags, "--record-end", escaped(d.End()))
	}
	return flags
}

func (d *Dialect) eol() byte {
	switch {
	case d.RecordEnd != "":
		return d.RecordEnd[0]
	case d.EOL == 0:
		return '\n'
	}
	return d.EOL
}

// End returns the record end without the CRs that may precede an LF.
func (d *Dialect) End() string {
	if d.RecordEnd != "" {
		return d.RecordEnd
	}
	return string([]byte{d.eol()})
}

// dropsCR reports whether CRs before an LF belong to the record end.
func (d *Dialect) dropsCR() bool { return d.RecordEnd == "" && d.eol() == '\n' }

// lineByte returns the byte that ends a line, as line numbers count them: CR if records end with a CR, otherwise LF.
func (d *Dialect) lineByte() byte {
	if d.RecordEnd == "" && d.EOL == '\r' || d.RecordEnd == "\r" {
		return '\r'
	}
	return '\n'
}

// Lines returns the number of line ends in a text.
func (d *Dialect) Lines(text []byte) int { return bytes.Count(text, []byte{d.lineByte()}) }

// Ended reports whether a raw record ends with its record end.
func (d *Dialect) Ended(record []byte) bool {
	before, ended := bytes.CutSuffix(record, []byte(d.End()))
	if !ended || d.Escape == 0 || !d.Escapes.coverEnds() {
		return ended
	}
	run := len(before) - len(bytes.TrimRight(before, string([]byte{d.Escape})))
	return run%2 == 0 // otherwise the record end is escaped and is data
}

// Parallel reports whether chunks can be scanned before the chunks in front of them. Comments, escapes combined with
// quotes, blanks around quotes, and long delimiters or record ends give a chunk too many possible states.
func (d *Dialect) Parallel() bool { return d.plain() && (!d.Trim || d.Quote == 0) }

// plain reports whether the fast parser can split lines that have no quotes and no escapes.
func (d *Dialect) plain() bool {
	return len(d.Delimiter) == 1 && len(d.RecordEnd) <= 1 && d.Comment == "" && (d.Escape == 0 || d.Quote == 0)
}

// simple reports whether the fast parser can read records with quotes.
func (d *Dialect) simple() bool { return d.Parallel() && d.Escape == 0 }

// clickHouseFamilies holds ClickHouse's types without parameters: https://clickhouse.com/docs/sql-reference/data-types
var clickHouseFamilies = strings.Fields(`
		Int8 Int16 Int32 Int64 Int128 Int256 UInt8 UInt16 UInt32 UInt64 UInt128 UInt256 Float32 Float64 BFloat16
		Decimal Decimal32 Decimal64 Decimal128 Decimal256 Bool String FixedString UUID IPv4 IPv6
		Date Date32 DateTime DateTime32 DateTime64 Time Time64 Enum Enum8 Enum16 Array Tuple Map Nested Nullable LowCardinality
		AggregateFunction SimpleAggregateFunction Object JSON Variant Dynamic Nothing Point Ring LineString MultiLineString
		Polygon MultiPolygon QBit IntervalNanosecond IntervalMicrosecond IntervalMillisecond IntervalSecond IntervalMinute
		IntervalHour IntervalDay IntervalWeek IntervalMonth IntervalQuarter IntervalYear`)

// NamesTypes reports whether all fields are ClickHouse types, as in line 2 of TabSeparatedWithNamesAndTypes.
func NamesTypes(rec *record.Record) bool {
	if rec.Bad != nil {
		return false
	}
	for _, f := range rec.Fields {
		family, parameters, found := strings.Cut(string(f.Bytes), "(")
		if f.Kind != record.Text || !slices.Contains(clickHouseFamilies, family) ||
			found && !strings.HasSuffix(parameters, ")") {
			return false
		}
	}
	return true
}
