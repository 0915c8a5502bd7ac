package intake

import (
	"encoding/json"
	"testing"

	"tsimport/internal/table"
	"tsimport/reader/record"
)

func TestARejectedRecordOfNoTextFormatIsALineOfJSON(t *testing.T) {
	seconds := table.Time{}
	amounts := integers([]table.Column{
		{Source: "amount", Type: table.Integer}, {Source: "when", Type: table.Integer, Time: &seconds},
	})
	columns := []string{"s", "none", "n", "i", "u", "b", "bin", "j", "amount", "when"}
	rec := &record.Record{Fields: []record.Datum{
		{Kind: record.String, Bytes: []byte("a \"b\"\n")},
		{},
		{Kind: record.Number, Bytes: []byte("1.50")},
		{Kind: record.Integer, Int: -7},
		{Kind: record.Unsigned, Int: -1},
		{Kind: record.Boolean, Int: 1},
		{Kind: record.Binary, Bytes: []byte{0, 255}},
		{Kind: record.JSON, Bytes: []byte(`{"x":[1]}`)},
		{Kind: record.Decimal, Bytes: []byte{12}},
		{Kind: record.Timestamp, Int: 0, Unit: record.Seconds},
	}}
	line := appendRecord([]byte("before\n"), columns, rec, amounts)
	const want = "before\n" + `{"s":"a \"b\"\n","n":1.50,"i":-7,"u":18446744073709551615,"b":true,"bin":"AP8=","j":{"x":[1]},"amount":12,"when":"1970-01-01T00:00:00Z"}` + "\n"
	if string(line) != want {
		t.Errorf("got\n%swant\n%s", line, want)
	}
	if !json.Valid(line[len("before\n"):]) {
		t.Error("the line is no JSON")
	}
}
