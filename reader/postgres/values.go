package postgres

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"

	"tsimport/reader/record"
)

// readers make data of the texts of types that the kind alone does not say it of.
var readers = map[string]func(d *record.Datum, text []byte, scratch *[]byte) error{
	"float4": readFloat, "bool": readBool, "bytea": readBytes, "timestamp": readTime, "timestamptz": readTime,
}

// readFloat makes the double that a float4 is, not the nearest to its text.
func readFloat(d *record.Datum, text []byte, _ *[]byte) (err error) {
	d.Double, err = strconv.ParseFloat(string(text), 32)
	return err
}

func readBool(d *record.Datum, text []byte, _ *[]byte) error {
	d.Int = 0
	if len(text) == 1 && text[0] == 't' {
		d.Int = 1
	}
	return nil
}

func readBytes(d *record.Datum, text []byte, scratch *[]byte) (err error) {
	digits, ok := bytes.CutPrefix(text, []byte(`\x`))
	if !ok {
		return fmt.Errorf("a value of bytea begins with %.10q, not with \\x", text)
	}
	from := len(*scratch)
	*scratch, err = hex.AppendDecode(*scratch, digits)
	d.Bytes = (*scratch)[from:len(*scratch):len(*scratch)]
	return err
}

// readTime writes a time as RFC 3339 does, where it can: infinity and years before 1 stay as they are.
func readTime(d *record.Datum, text []byte, scratch *[]byte) error {
	d.Bytes = text
	space := bytes.IndexByte(text, ' ')
	if space < 0 || bytes.HasSuffix(text, []byte("BC")) {
		return nil
	}
	from := len(*scratch)
	*scratch = append(append(append(*scratch, text[:space]...), 'T'), text[space+1:]...)
	if rest, ok := bytes.CutSuffix(*scratch, []byte("+00")); ok {
		*scratch = append(rest, 'Z')
	}
	d.Bytes = (*scratch)[from:len(*scratch):len(*scratch)]
	return nil
}
