package csv

import (
	"encoding/hex"
	"fmt"
	"strings"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// Escapes defines the meaning of escape sequences, as the program that wrote a dump would read it.
type Escapes uint8

const (
	// EscapesText keeps the byte after the escape. After a backslash it refuses letters and digits: they have meanings.
	EscapesText Escapes = iota
	// EscapesMySQL is LOAD DATA's format: \0 \b \n \r \t \Z; any other byte stands for itself.
	// https://dev.mysql.com/doc/refman/8.4/en/load-data.html
	EscapesMySQL
	// EscapesPostgres is COPY's text format: \b \f \n \r \t \v, \ with up to three octal digits, \x with up to two
	// hexadecimal digits; any other byte stands for itself. https://www.postgresql.org/docs/current/sql-copy.html
	EscapesPostgres
	// EscapesClickHouse is TabSeparated: \a \b \e \f \n \r \t \v \0, \x with two hexadecimal digits. As in ClickHouse, the
	// backslash remains before other bytes, except quotes, slashes and control characters.
	// https://clickhouse.com/docs/interfaces/formats/TabSeparated
	EscapesClickHouse
	// EscapesHive is LazySimpleSerDe with ESCAPED BY: \n, \r, the escape character and the separators, which are the
	// control characters 1 to 8 and the delimiter. A line end always ends the record.
	// https://cwiki.apache.org/confluence/display/Hive/LanguageManual+DDL
	EscapesHive
	// EscapesUnknown means that it is unknown whether a file has escapes. All are refused, except \N for null.
	EscapesUnknown
)

// coverEnds reports whether a record end after an escape is data.
func (e Escapes) coverEnds() bool { return e != EscapesHive && e != EscapesUnknown }

const escapesAdvice = "say which program wrote the file: --dialect mysql, postgres, clickhouse or hive (docs/dumps.md)"

// pair appends the meaning of the escape sequence at the start of text. It returns its length and, if doubtful, why.
func (d *Dialect) pair(dst, text []byte) (_ []byte, n int, why string) {
	c := text[1]
	switch d.Escapes {
	case EscapesMySQL:
		return append(dst, mysqlEscapes[c]), 2, ""
	case EscapesPostgres:
		return postgresEscape(dst, text)
	case EscapesClickHouse:
		return clickHouseEscape(dst, text)
	case EscapesHive:
		switch {
		case c == 'n':
			return append(dst, '\n'), 2, ""
		case c == 'r':
			return append(dst, '\r'), 2, ""
		case c == d.Escape || c == d.Delimiter[0] || c >= 1 && c <= 8:
			return append(dst, c), 2, ""
		}
		return dst, 2,
			fmt.Sprintf("Hive does not write %q where it escapes; if the table has no ESCAPED BY, give --dialect hive-plain",
				text[:2])
	case EscapesUnknown:
		return dst, 2, fmt.Sprintf("%q may be an escape sequence or text: give --dialect hive-escaped if the table has "+
			"ESCAPED BY, hive-plain if not", text[:2])
	}
	if d.Escape == '\\' && isAlphanumeric(c) {
		return dst, 2, fmt.Sprintf("%q after the character of --escape has a meaning in most files: %s", c, escapesAdvice)
	}
	return append(dst, c), 2, ""
}

// Meanings of the byte after a backslash.
var (
	mysqlEscapes      = escapes("0bnrtZ", "\x00\b\n\r\t\x1a")
	postgresEscapes   = escapes("bfnrtv", "\b\f\n\r\t\v")
	clickHouseEscapes = escapes("abefnrtv0", "\a\b\x1b\f\n\r\t\v\x00")
)

// escapes returns a table that maps letters to their meanings and any other byte to itself.
func escapes(letters, meanings string) (all [256]byte) {
	for i := range all {
		all[i] = byte(i)
	}
	for i := range letters {
		all[letters[i]] = meanings[i]
	}
	return all
}

func postgresEscape(dst, text []byte) (_ []byte, n int, why string) {
	c := text[1]
	switch c {
	case 'x':
		if value, digits := digitsOf(text[2:], 2, 16); digits > 0 {
			return append(dst, value), 2 + digits, ""
		}
	case '0', '1', '2', '3', '4', '5', '6', '7':
		value, digits := digitsOf(text[1:], 3, 8)
		return append(dst, value), 1 + digits, ""
	}
	return append(dst, postgresEscapes[c]), 2, ""
}

func clickHouseEscape(dst, text []byte) (_ []byte, n int, why string) {
	c := text[1]
	meaning := clickHouseEscapes[c]
	switch c {
	case 'x':
		value, digits := digitsOf(text[2:], 2, 16)
		if digits < 2 {
			return dst, 2, `\x without two hexadecimal digits is not an escape sequence of ClickHouse`
		}
		return append(dst, value), 4, ""
	case 'N':
		return dst, 2, `\N means null only as the whole field; ClickHouse does not write it inside one`
	case '\\', '\'', '"', '`', '/':
	default:
		if meaning == c && c >= ' ' && c != 0x7f {
			dst = append(dst, '\\')
		}
	}
	return append(dst, meaning), 2, ""
}

// digitsOf parses up to most digits. It keeps the low byte of the value, as PostgreSQL does.
func digitsOf(text []byte, most, base int) (value byte, digits int) {
	n := 0
	for digits < min(most, len(text)) {
		i := strings.IndexByte("00112233445566778899aAbBcCdDeEfF", text[digits])
		if i < 0 || i/2 >= base {
			break
		}
		n = n*base + i/2
		digits++
	}
	return byte(n), digits
}

// settle sets the kind of an unquoted field by its raw text or, in a typed dialect, the kind of any field.
func (p *Parser) settle(f *record.Datum, raw []byte) {
	d := &p.d
	switch {
	case f.Quoted:
		if d.Typed {
			f.Kind = record.String
		}
	case p.null != "" && string(raw) == p.null:
		f.Kind = record.Null
	case d.Doubt != "" && string(raw) == d.Doubt:
		p.reject(table.CodeEscape, doubtMessage(d), raw)
	case d.Typed:
		p.typed(f, raw)
	}
}

func doubtMessage(d *Dialect) string {
	if d.Doubt == `\N` {
		return `mysql --batch does not write \N; for SELECT INTO OUTFILE or mysqldump --tab give --dialect mysql-tab`
	}
	return "NULL means null in the output of mysql --batch, and text in that of SELECT INTO OUTFILE and mysqldump " +
		"--tab: give --dialect mysql-batch or mysql-tab"
}

// typed sets the kind of an unquoted SQL field, which is a blob X'…' or a number.
func (p *Parser) typed(f *record.Datum, raw []byte) {
	f.Kind = record.Number
	if len(raw) < 3 || raw[0]|0x20 != 'x' || raw[1] != '\'' || raw[len(raw)-1] != '\'' {
		return
	}
	from := len(p.scratch)
	var err error
	if p.scratch, err = hex.AppendDecode(p.scratch, raw[2:len(raw)-1]); err != nil {
		p.reject(table.CodeEscape, "X'…' without an even number of hexadecimal digits is not a blob", raw)
		return
	}
	f.Kind, f.Bytes = record.Binary, p.scratch[from:len(p.scratch):len(p.scratch)]
}
