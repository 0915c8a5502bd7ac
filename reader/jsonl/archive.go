package jsonl

import (
	"strconv"
	"unicode/utf8"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// A row of an archive is a line of the vendor's form in which T names the type of each attribute. A column that comes again is another
// version. Values under PK stand alone, in the order of the key, whose types the archive's manifest has:
//
//	{"PK":{"Values":["a",7]},"Attr":{"Values":[{"C":"n","V":1.5,"T":"double","TS":1626860469000},{"C":"n","V":"x","T":"string","TS":1626860468000}]}}
//
// A binary value is base64, a NaN or an infinity its 64 bits in hexadecimal. A string that is not UTF-8 is base64 and says Base64; under PK
// it is then an object, too.

// AppendArchive appends a record as a line of an archive. Its fields are the key, of the kinds Integer, String and Binary; cells are
// Integer, Double, Boolean, String or Binary. Unlike in AppendWide nothing is left out, however long.
func AppendArchive(dst []byte, key []table.KeyColumn, rec *record.Record) []byte {
	dst = append(dst, `{"PK":{"Values":`...)
	dst = AppendArchiveKey(dst, key, rec.Fields)
	dst = append(dst, `},"Attr":{"Values":[`...)
	for i := range rec.Cells {
		if i > 0 {
			dst = append(dst, ',')
		}
		c := &rec.Cells[i]
		dst = appendName(append(dst, '{'), c.Name)
		dst = append(dst, `,"V":`...)
		dst = appendTyped(dst, &c.Datum)
		if c.At >= 0 {
			dst = strconv.AppendInt(append(dst, `,"TS":`...), c.At, 10)
		}
		dst = append(dst, '}')
	}
	return append(dst, "]}}\n"...)
}

// AppendArchiveKey appends the values of a key as they stand under PK.
func AppendArchiveKey(dst []byte, key []table.KeyColumn, values []record.Datum) []byte {
	dst = append(dst, '[')
	for i, k := range key {
		if i > 0 {
			dst = append(dst, ',')
		}
		switch d := &values[i]; {
		case d.Kind == record.Integer:
			dst = strconv.AppendInt(dst, d.Int, 10)
		case d.Kind == record.Binary:
			dst = appendBase64(dst, d.Bytes)
		case utf8.Valid(d.Bytes):
			dst = appendText(dst, d.Bytes)
		default:
			dst = appendName(append(dst, '{'), []byte(k.Name))
			dst = append(appendTyped(append(dst, `,"V":`...), d), '}')
		}
	}
	return append(dst, ']')
}

func appendName(dst, name []byte) []byte {
	if utf8.Valid(name) {
		return appendText(append(dst, `"C":`...), name)
	}
	return appendBase64(append(dst, `"C64":`...), name)
}

// appendTyped appends V and T.
func appendTyped(dst []byte, d *record.Datum) []byte {
	switch d.Kind {
	case record.Integer:
		return append(strconv.AppendInt(dst, d.Int, 10), `,"T":"integer"`...)
	case record.Boolean:
		return append(strconv.AppendBool(dst, d.Int != 0), `,"T":"boolean"`...)
	case record.String:
		if utf8.Valid(d.Bytes) {
			return append(appendText(dst, d.Bytes), `,"T":"string"`...)
		}
	case record.Double:
		if from := len(dst); d.Double-d.Double == 0 {
			return append(table.AppendDouble(dst[:from], d.Double), `,"T":"double"`...)
		}
	}
	return appendWideValue(dst, d)
}

// archivedKey reads a value under PK that stands alone: the n-th of the key.
func (p *Parser) archivedKey(n int) bool {
	if n >= len(p.options.Archive) {
		return p.broken(wantArchive)
	}
	s, from := &p.scan, p.scan.pos
	var d record.Datum
	if !p.scalar(&d) {
		return false
	}
	ok := false
	switch p.options.Archive[n].Type {
	case table.Integer:
		v, err := strconv.ParseInt(string(d.Bytes), 10, 64)
		ok = d.Kind == record.Number && err == nil
		d = record.Datum{Kind: record.Integer, Int: v}
	case table.String:
		ok = d.Kind == record.String
	case table.Binary:
		if ok = d.Kind == record.String; ok {
			d.Kind = record.Binary
			d.Bytes, ok = unbase64(s, d.Bytes)
		}
	}
	name := p.options.Archive[n].Name
	if !ok {
		return p.refuse(name, table.CodeType, "the value is not of the key column's type", from)
	}
	i := p.column([]byte(name))
	if i < 0 {
		return true
	}
	if p.seen[i] == p.turn {
		return p.twice([]byte(name))
	}
	p.seen[i], p.record.Fields[i] = p.turn, d
	return true
}
