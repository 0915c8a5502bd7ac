package intake

import (
	"encoding/json"
	"math"
	"testing"

	"tsimport/internal/table"
	"tsimport/reader/record"
)

func TestARejectedRecordOfNoTextFormatIsALineOfJSON(t *testing.T) {
	seconds := table.Time{}
	amounts := bySource([]table.Column{
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

func TestARejectedRecordKeepsTheTypesThatItIsRejectedFor(t *testing.T) {
	own := func(name string, to, own table.Type) table.Column {
		return table.Column{Source: name, Type: to, Exact: true, Own: own}
	}
	loaded := bySource([]table.Column{
		own("i", table.Integer, table.Integer), own("d", table.Double, table.Double), own("a", table.Any, table.Any), own("s", table.String, table.String),
		own("n", table.String, table.Double), own("day", table.Integer, table.Integer), {Source: "asked", Type: table.String},
	})
	five := record.Datum{Kind: record.Double, Double: 5}
	rec := &record.Record{Fields: []record.Datum{
		five, {Kind: record.Double, Double: math.NaN()}, five, {Kind: record.Binary, Bytes: []byte{0, 255}}, five, {Kind: record.Date, Int: 1}, five,
	}}
	got := string(appendRecord(nil, []string{"i", "d", "a", "s", "n", "day", "asked"}, rec, loaded))
	const want = `{"i":5.0,"d":"NaN","a":5.0,"s":{"base64":"AP8="},"n":5,"day":"1970-01-02","asked":"5"}` + "\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
