package reader

import (
	"bytes"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/convert"
	"example.com/tsimport/reader/record"
)

// This file detects joined files, and columns that are both in the records and in folder names.

// seam is a header. A record equal to it is never data.
type seam [][]byte

// addSeam records a header as a seam, unless it has a single column: its name may also be a value.
func (s *csvText) addSeam(header *record.Record) {
	if len(header.Fields) < 2 {
		return
	}
	var known seam
	for _, f := range header.Fields {
		known = append(known, bytes.Clone(f.Bytes))
	}
	s.seams = append(s.seams, known)
}

const mark = "\xef\xbb\xbf" // U+FEFF

// seamAt returns why a record is a seam between joined files, or nil if it is data. It runs for every record.
func (s *csvText) seamAt(text []byte, rec *record.Record) *table.Reason {
	start := text[rec.Span.Start:]
	if start[0] == mark[0] && bytes.HasPrefix(start, []byte(mark)) && !s.text.decode {
		return &table.Reason{Code: table.CodeSeam, Message: "the record begins with a byte order mark: files were joined"}
	}
	for _, header := range s.seams {
		if len(rec.Fields) != len(header) || len(rec.Fields[0].Bytes) != len(header[0]) {
			continue
		}
		same := func(f record.Datum, name []byte) bool { return bytes.Equal(f.Bytes, name) }
		if slices.EqualFunc(rec.Fields, header, same) {
			return &table.Reason{Code: table.CodeSeam, Message: "the record repeats the header: files were joined here"}
		}
	}
	return nil
}

// noteRepeated adds a note if the name of the only column is also a value.
func (s *csvText) noteRepeated(header, text []byte) {
	line, end := bytes.TrimRight(header, "\r\n"), []byte(s.Dialect.End())
	for one := range bytes.SplitSeq(text, end) {
		if bytes.Equal(bytes.TrimRight(one, "\r"), line) {
			s.Notes = append(s.Notes, fmt.Sprintf("%s: %q, the name of its only column, appears again and is loaded as a "+
				"value; files may have been joined there", s.Name, line))
			return
		}
	}
}

// inBoth is a column that is both in the records and in the name of their folder.
type inBoth struct{ own, folder int }

func (s *File) inBoth(used []int) (list []inBoth) {
	for i := len(s.Columns) - len(s.fixed); i < len(s.Columns); i++ {
		own := slices.Index(s.Columns, s.Columns[i])
		if own < len(s.Columns)-len(s.fixed) && slices.Contains(used, i) {
			list = append(list, inBoth{own, i})
		}
	}
	return list
}

// sameValue reports whether a value and its folder's are equal as text, number or time. A missing value equals any.
func (s *File) sameValue(own, folder *record.Datum) bool {
	switch {
	case own.None() || own.Kind == record.Text && !own.Quoted && len(own.Bytes) == 0:
		return true
	case folder.None():
		return false
	}
	text := convert.Text(own)
	if own.Kind == record.Text && s.text.decode {
		decoded, bad := s.Encoding.Decode(nil, own.Bytes)
		if bad >= 0 {
			return false
		}
		text = string(decoded)
	}
	if own.Kind == record.Text && s.o.TrimNames && !own.Quoted {
		text = strings.Trim(text, " \t")
	}
	given := string(folder.Bytes)
	return text == given || sameNumber(text, given) || moment(text) == moment(given)
}

func sameNumber(a, b string) bool {
	if strings.Trim(a, "-.0123456789") != "" || strings.Trim(b, "-.0123456789") != "" { // this excludes large exponents
		return false
	}
	x, ok := new(big.Rat).SetString(a)
	y, too := new(big.Rat).SetString(b)
	return ok && too && x.Cmp(y) == 0
}

// moment converts a date and time to RFC 3339 without trailing zeros. It returns any other text unchanged.
func moment(text string) string {
	if t, err := time.Parse("2006-01-02 15:04:05", strings.Replace(text, "T", " ", 1)); err == nil {
		return t.Format(time.RFC3339Nano)
	}
	return text
}
