package wire

import "testing"

func TestZerosMayFollowARowAndNothingElse(t *testing.T) {
	row := AppendRow(AppendHeader(nil), []Cell{{Name: []byte("pk1"), Type: String, Value: []byte("a")}}, nil)
	var d Decoder
	for name, v := range map[string]struct {
		tail []byte
		ok   bool
	}{
		"nothing":               {nil, true},
		"a zero":                {[]byte{0}, true},
		"zeros":                 {make([]byte, 40), true},
		"a one":                 {[]byte{1}, false},
		"a one behind zeros":    {[]byte{0, 0, 1}, false},
		"another row":           {row[4:], false},
		"another row, header":   {row, false},
		"a checksum once again": {[]byte{9, 0}, false},
	} {
		got, err := d.Row(append(row[:len(row):len(row)], v.tail...))
		if (err == nil) != v.ok || v.ok && (len(got.Key) != 1 || string(got.Key[0].Value) != "a") {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
