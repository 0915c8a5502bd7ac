package jsonl

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// debeziumText returns an event, as in Debezium's documentation, for a table shop.public.orders with id and one column.
func debeziumText(connector, op, column, value string) string {
	const of = `"__debezium.source.column.type":"OTHER"`
	switch {
	case strings.Contains(column, sourceType):
	case strings.Contains(column, `"parameters":{`):
		column = strings.Replace(column, `"parameters":{`, `"parameters":{`+of+`,`, 1)
	default:
		column += `,"parameters":{` + of + `}`
	}
	fields := `[{"type":"int32","optional":false,"parameters":{` + of + `},"field":"id"},{` + column +
		`,"optional":true,"field":"v"}]`
	row := `{"id":7,"v":` + value + `}`
	before, after := "null", row
	if op == "d" {
		before, after = row, "null"
	}
	return `{"schema":{"type":"struct","fields":[{"type":"struct","fields":` + fields +
		`,"optional":true,"field":"before"},{"type":"struct","fields":` + fields +
		`,"optional":true,"field":"after"},{"type":"string","field":"op"}]},"payload":{"before":` + before + `,"after":` +
		after + `,"source":{"connector":"` + connector + `","db":"shop","schema":"public","table":"orders"},"op":"` + op +
		`","ts_ms":5}}`
}

func shown(d *record.Datum) string {
	switch d.Kind {
	case record.Integer:
		return strconv.FormatInt(d.Int, 10)
	case record.Unsigned:
		return strconv.FormatUint(uint64(d.Int), 10)
	case record.Double:
		return strconv.FormatFloat(d.Double, 'g', -1, 64)
	case record.Boolean:
		return strconv.FormatBool(d.Int != 0)
	}
	return string(d.Bytes)
}

func changesOf(text string, c Changes) (all []string, others int) {
	if c.Typed == nil {
		c.Typed = func(string) bool { return false }
	}
	p := NewParser(Options{Changes: c, Columns: []string{"id"}})
	p.Reset([]byte(text))
	for rec, ok := p.Next(); ok; rec, ok = p.Next() {
		if rec.Bad != nil {
			all = append(all, rec.Bad.Code+": "+rec.Bad.Message)
			continue
		}
		line := fmt.Sprint([...]string{"put", "update", "delete"}[rec.Mode], " ", shown(&rec.Fields[0]))
		for _, cell := range rec.Cells {
			if string(cell.Name) != "id" {
				line += fmt.Sprintf(" %s=%v:%s", cell.Name, cell.Kind, shown(&cell.Datum))
			}
		}
		all = append(all, line)
	}
	others, _ = p.Followed()
	return all, others
}

func TestDebeziumValuesEqualDatabaseLoad(t *testing.T) {
	unscaled := base64.StdEncoding.EncodeToString(big.NewInt(1050).Bytes())
	propagated := func(of, n string) string {
		return `"parameters":{"__debezium.source.column.type":"` + of + `","__debezium.source.column.length":"` + n + `"}`
	}
	for _, c := range []struct{ connector, column, value, want string }{
		{"postgresql", `"type":"int64"`, `-9223372036854775808`, "-9223372036854775808"},
		{"postgresql", `"type":"double"`, `0.1`, "0.1"},
		{"mariadb", `"type":"float"`, `1.1`, "1.100000023841858"},
		{"postgresql", `"type":"boolean"`, `true`, "true"},
		{"postgresql", `"type":"boolean",` + propagated("BIT", "1"), `true`, "1"},
		{"postgresql", `"type":"bytes","name":"io.debezium.data.Bits","parameters":{"length":"10"}`, `"BQI="`, "1000000101"},
		{"postgresql", `"type":"bytes","name":"io.debezium.data.Bits","parameters":{"length":"10"}`, `""`, "0000000000"},
		{"mysql", `"type":"bytes","name":"io.debezium.data.Bits","parameters":{"length":"10"}`, `"BQI="`, "517"},
		{"mysql", `"type":"int64",` + propagated("BIGINT UNSIGNED", "20"), `9223372036854775807`, "9223372036854775807"},
		{"postgresql", `"type":"string"`, `"caf\u00e9"`, "café"},
		{"postgresql", `"type":"string","name":"io.debezium.data.Json"`, `"{\"a\": 1}"`, `{"a": 1}`},
		{"postgresql", `"type":"bytes"`, `"AP8="`, "\x00\xff"},
		{"postgresql", `"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2"}`, `"` +
			unscaled + `"`, "10.50"},
		{"postgresql", `"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2"}`,
			`"+w=="`, "-0.05"},
		{"postgresql", `"type":"struct","name":"io.debezium.data.VariableScaleDecimal"`, `{"scale":3,"value":"` + unscaled +
			`"}`, "1.050"},
		{"postgresql", `"type":"int32","name":"io.debezium.time.Date"`, `19782`, "2024-02-29"},
		{"postgresql", `"type":"int32","name":"io.debezium.time.Date"`, `-1`, "1969-12-31"},
		{"postgresql", `"type":"int64","name":"io.debezium.time.MicroTimestamp"`, `1709210096500000`,
			"2024-02-29T12:34:56.5"},
		{"postgresql", `"type":"int64","name":"io.debezium.time.MicroTimestamp"`, `-1`, "1969-12-31T23:59:59.999999"},
		{"mariadb", `"type":"int64","name":"io.debezium.time.Timestamp",` + propagated("DATETIME", "3"), `1709210096500`,
			"2024-02-29T12:34:56.500"},
		{"mariadb",
			`"type":"int64","name":"io.debezium.time.Timestamp","parameters":{"__debezium.source.column.type":"DATETIME"}`,
			`1709210096000`, "2024-02-29T12:34:56"},
		{"postgresql", `"type":"string","name":"io.debezium.time.ZonedTimestamp"`, `"2024-02-29T12:34:56.700000Z"`,
			"2024-02-29T12:34:56.7Z"},
		{"mariadb", `"type":"string","name":"io.debezium.time.ZonedTimestamp",` + propagated("TIMESTAMP", "6"),
			`"2024-02-29T14:34:56.7+02:00"`, "2024-02-29T12:34:56.700000Z"},
		{"mariadb", `"type":"int64","name":"io.debezium.time.MicroTime",` + propagated("TIME", "1"), `-3020399900000`,
			"-838:59:59.9"},
		{"postgresql", `"type":"int64","name":"io.debezium.time.MicroTime"`, `86400000000`, "24:00:00"},
		{"mariadb", `"type":"int32","name":"io.debezium.time.Year"`, `2024`, "2024"},
	} {
		all, _ := changesOf(debeziumText(c.connector, "c", c.column, c.value), Changes{Form: DebeziumChanges})
		conformance.True(t, len(all) == 1 && strings.HasPrefix(all[0], "put 7 v=") && strings.HasSuffix(all[0], ":"+c.want),
			"%s %s: %q, want %q", c.column, c.value, all, c.want)
	}
}

func TestInexactEventsAreRefused(t *testing.T) {
	of := func(name string) string { return `"parameters":{"__debezium.source.column.type":"` + name + `"}` }
	for _, c := range []struct{ connector, column, value, want string }{
		{"mariadb", `"type":"int64","name":"io.debezium.time.Timestamp","parameters":{"__debezium.source.column.type":""}`,
			`1`, "column.propagate.source.type"},
		{"postgresql",
			`"type":"bytes","name":"io.debezium.data.Bits","parameters":{"length":"10","__debezium.source.column.type":"VARBIT"}`, `"BQ=="`, "varbit"},
		{"postgresql", `"type":"int32","name":"io.debezium.time.Date"`, `-141428`, "before 1582-10-15"},
		{"postgresql", `"type":"int64","name":"io.debezium.time.MicroTimestamp"`, `9223372036825200000`, "after 9999"},
		{"postgresql", `"type":"int64","name":"io.debezium.time.MicroDuration"`, `1`, "leave the column out"},
		{"postgresql", `"type":"string","name":"io.debezium.time.ZonedTime"`, `"12:00:00Z"`, "leave the column out"},
		{"postgresql", `"type":"array"`, `[1]`, "leave the column out"},
		{"mysql", `"type":"boolean",` + of("BOOL"), `true`, "number to a boolean"},
		{"mysql", `"type":"string","name":"io.debezium.data.Json",` + of("JSON"), `"{}"`, "text of JSON"},
		{"postgresql", `"type":"double",` + of("NUMERIC"), `1.5`, "decimal to a double"},
		{"postgresql", `"type":"string",` + of("BYTEA"), `"00"`, "bytes to text"},
		{"mysql",
			`"type":"int64","name":"io.debezium.time.MicroTimestamp","parameters":{"__debezium.source.column.type":"DATETIME","__debezium.source.column.length":"100"}`, `1`, "100 digits"},
		{"mysql", `"type":"struct","name":"io.debezium.data.geometry.Point"`, `{}`, "leave the column out"},
		{"postgresql",
			`"type":"string","name":"io.debezium.data.Json","parameters":{"__debezium.source.column.type":"HSTORE"}`,
			`"{}"`, "hstore"},
		{"postgresql", `"type":"int32"`, `1.5`, "not an integer"},
		{"postgresql", `"type":"bytes"`, `"!"`, "not base64"},
		{"postgresql", `"type":"string"`, `5`, "not a string"},
		{"postgresql", `"type":"boolean"`, `"x"`, "not a boolean"},
		{"postgresql", `"type":"double"`, `"x"`, "not a number"},
	} {
		all, _ := changesOf(debeziumText(c.connector, "u", c.column, c.value), Changes{Form: DebeziumChanges})
		conformance.True(t, len(all) == 1 && strings.HasPrefix(all[0], table.CodeType) && strings.Contains(all[0], c.want),
			"%s %s: %q, want %q", c.column, c.value, all, c.want)
		all, _ = changesOf(debeziumText(c.connector, "u", c.column, c.value),
			Changes{Form: DebeziumChanges, Without: func(name string) bool { return name == "v" }})
		conformance.True(t, len(all) == 1 && all[0] == "put 7", "%s without the column: %q", c.column, all)
	}
}

func TestDebeziumEventsBecomeChanges(t *testing.T) {
	text := `"type":"string"`
	event := func(op string) string { return debeziumText("postgresql", op, text, `"x"`) }
	bare := func(rest string) string {
		return `{"before":null,"source":{"connector":"postgresql","db":"shop","schema":"public","table":"orders"},` + rest +
			`}`
	}
	other := strings.ReplaceAll(event("c"), `"table":"orders"`, `"table":"other"`)
	ddl := func(id, kind string) string {
		return `{"source":{"connector":"mysql","db":"shop"},"ts_ms":1,"databaseName":"shop","ddl":"ALTER TABLE orders ADD x int","tableChanges":[{"type":"` + kind + `","id":` + id + `}]}`
	}
	typed := Changes{Form: DebeziumChanges, Typed: func(string) bool { return true }}
	for name, c := range map[string]struct {
		text   string
		of     Changes
		want   string // all records
		others int
	}{
		"all operations": {text: event("c") + "\n" + event("r") + "\n" + event("u") + "\n" + event("d"),
			want: "put 7 v=7:x; put 7 v=7:x; put 7 v=7:x; delete 7 v=7:x"},
		"tombstones": {text: "null\n" + `{"schema":null,"payload":null}` + "\n" +
			`{"schema":{},"payload":{"ts_ms":5}}` + "\n" + event("c") + "\n\n", want: "put 7 v=7:x"},
		"transactions":      {text: `{"status":"BEGIN","id":"5","ts_ms":1}` + "\n" + event("c"), want: "put 7 v=7:x"},
		"a message":         {text: strings.ReplaceAll(event("c"), `"op":"c"`, `"op":"m"`)},
		"values not logged": {text: debeziumText("postgresql", "u", text, `"`+unavailable+`"`)},
		"a new key lacks one": {text: debeziumText("postgresql", "c", text, `"`+unavailable+`"`),
			want: "BadChange: the value did not change when the row's key did"},
		"a deletion lacks one": {text: debeziumText("postgresql", "d", text, `"`+unavailable+`"`), want: "delete 7"},
		"bytes not logged":     {text: debeziumText("postgresql", "u", `"type":"bytes"`, `"`+unavailableBytes+`"`)},
		"a null":               {text: debeziumText("postgresql", "u", text, "null"), want: "put 7 v=0:"},
		"other tables": {text: event("c") + "\n" + other + "\n" + other, of: Changes{Table: "public.orders"},
			want: "put 7 v=7:x", others: 2},
		"no table is named": {text: event("c") + "\n" + other, of: Changes{Whole: new(TableOnce)},
			want: "put 7 v=7:x; OtherTable: the change is of table shop.public.other"},
		"a name of two tables": {text: event("c") + "\n" + strings.ReplaceAll(event("c"), `"schema":"public"`,
			`"schema":"archive"`), of: Changes{Table: "orders", Whole: new(TableOnce)},
			want: "put 7 v=7:x; OtherTable: the change is of table shop.archive.orders"},
		"a name with a dot": {text: event("c") + "\n" + strings.ReplaceAll(event("c"), `"table":"orders"`,
			`"table":"x.orders"`), of: Changes{Table: "orders", Whole: new(TableOnce)}, want: "put 7 v=7:x", others: 1},
		"another key": {text: strings.Replace(debeziumText("mysql", "u", text, `"x"`), `"before":null`,
			`"before":{"id":8,"v":"x"}`, 1), want: "BadChange: the update changes a column of the table's key, and would leave"},
		"the same key": {text: strings.Replace(debeziumText("mysql", "u", text, `"x"`), `"before":null`,
			`"before":{"id":7,"v":"y"}`, 1), want: "put 7 v=7:x"},
		"a status column": {text: `{"status":"shipped","id":1}`, want: "BadChange: want op and source"},
		"nothing":         {text: `{}`, want: "BadChange: want op and source"},
		"an emptied table": {
			text: `{"source":{"connector":"mysql","db":"shop"},"ddl":"TRUNCATE TABLE orders","tableChanges":[]}`,
			want: "TableChange: a statement that truncates or drops something"},
		"a default for a null": {text: debeziumText("mysql", "c", `"type":"int32","default":7`, "7"),
			want: "BadChange: the value is the column's default"},
		"a default, and nulls": {text: strings.Replace(debeziumText("mysql", "c", `"type":"int32","default":7`, "7"),
			`"connector":`, `"snapshot":null,"connector":`, 1), want: "put 7 v=3:7"},

		"a part of a name": {text: event("c"), of: Changes{Table: "ders"}, others: 1},
		"no schema": {text: bare(`"op":"c","after":{"id":7,"v":"x","n":5,"f":1.5,"b":true}`), of: typed,
			want: "put 7 v=7:x n=2:5 f=2:1.5 b=6:true"},
		"no schema, no types": {text: bare(`"op":"c","after":{"id":7}`), want: "BadChange: the event does not state"},
		"no schema, object": {text: bare(`"op":"c","after":{"id":7,"v":{}}`), of: typed,
			want: "BadChange: the event does not state"},
		"truncated":         {text: bare(`"op":"t"`), want: "TableChange: table shop.public.orders was truncated"},
		"an op of tomorrow": {text: bare(`"op":"x"`), want: `BadChange: unknown op "x"`},
		"no image":          {text: bare(`"op":"d"`), want: `BadChange: a change "d" has no row image`},
		"no op":             {text: bare(`"after":{"id":7}`), want: "BadChange: want op and source"},
		"an alteration": {text: ddl(`"\"shop\".\"orders\""`, "ALTER"), of: Changes{Table: "orders"},
			want: "TableChange: table shop.orders was altered: ALTER TABLE orders ADD x int"},
		"another is altered": {text: ddl(`"\"shop\".\"other\""`, "ALTER"), of: Changes{Table: "orders"}, others: 1},
		"a first definition": {text: ddl(`"\"shop\".\"orders\""`, "CREATE"), of: Changes{Table: "orders"}, others: 1},
		"after another's": {text: other + event("c"), of: Changes{Table: "orders"},
			want: "BadJSON: want nothing after the object", others: 1},
		"after a tombstone": {text: "null " + event("c"), want: "BadJSON: want nothing after the object"},
		"no object":         {text: "[]", want: "BadJSON: want an object"},
		"half of one":       {text: `{"payload":`, want: "BadJSON: want a value"},
		"a key twice":       {text: `{"op":"c","op":"d"}`, want: "BadJSON: key"},
		"more after it":     {text: event("c") + " x", want: "BadJSON: want nothing after the object"},
	} {
		c.of.Form = DebeziumChanges
		all, others := changesOf(c.text, c.of)
		got := strings.Join(all, "; ")
		conformance.True(t, (got == c.want || strings.Contains(c.want, ": ") && strings.HasPrefix(got, c.want)) &&
			others == c.others, "%s: %q and %d others, want %q and %d", name, got, others, c.want, c.others)
	}
}

func TestDynamoDBExportLinesBecomeChanges(t *testing.T) {
	put := `{"Metadata":{"WriteTimestampMicros":{"N":"1680109764000000"}},"Keys":{"id":{"S":"a"}},"OldImage":{"id":{"S":"a"}},"NewImage":{"id":{"S":"a"},"n":{"N":"5"},"m": {"M": {"x":{"BOOL":true}}}}}`
	deleted := `{"Metadata":{"WriteTimestampMicros":{"N":"1"}},"Keys":{"id":{"S":"b"}},"OldImage":{"id":{"S":"b"}}}`
	all, _ := changesOf(put+"\n"+deleted+"\n"+`{"Keys":{"id":{"S":1}}}`+"\n"+`{"NewImage":{}}`+"\n"+
		`{"Keys":{"id":{"S":"a"}},"New":1}`+"\n"+`{"Keys":5}`, Changes{Form: DynamoDBChanges})
	want := []string{`put a n=2:5 m=9:{"x":true}`, "delete b", CodeTag, CodeChange + ": want Keys", CodeChange +
		`: member "New"`, CodeChange + ": Keys is not"}
	for i := range want {
		conformance.True(t, i < len(all) && strings.HasPrefix(all[i], want[i]), "%q, want %q", all, want[i])
	}
}

// FuzzChange parses any line. Without white space, the line must give the same result.
func FuzzChange(f *testing.F) {
	f.Add([]byte(debeziumText("postgresql", "u", `"type":"string"`, `"x"`)))
	f.Add([]byte(debeziumText("mysql", "d", `"type":"int64","name":"io.debezium.time.Timestamp"`, `5`)))
	f.Add([]byte(`{"Keys":{"id":{"S":"a"}},"NewImage":{"id":{"S":"a"},"n":{"L":[{"N":"5"}]}}}`))
	f.Add([]byte(`{"schema":null,"payload":{"op":"c","after":{"\u0069d":[{"a":"]}\\\""}]},"source":{"table":"t"}}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, form := range []ChangeForm{DebeziumChanges, DynamoDBChanges} {
			of := Changes{Form: form, Typed: func(string) bool { return true }}
			first, _ := changesOf(string(line), of)
			var compact json.RawMessage
			if strings.Contains(string(line), "\n") || json.Unmarshal(line, &compact) != nil || len(first) != 1 ||
				strings.Contains(first[0], ": ") {
				continue
			}
			spaced, err := json.MarshalIndent(compact, " ", " ")
			if err != nil {
				continue
			}
			p := NewParser(Options{Changes: of, Layout: Objects, Columns: []string{"id"}})
			p.Reset(spaced)
			rec, ok := p.Next()
			conformance.True(t, ok && rec.Bad == nil && rec.Mode <= table.Delete, "%s changes with white space", line)
		}
	})
}

func unfolded(t *testing.T, text string, longest int) string {
	t.Helper()
	return string(conformance.Try(io.ReadAll(UnfoldCanal(strings.NewReader(text), longest))).Must(t))
}

// canalText returns a message, as in canal's documentation, for a table shop.orders.
func canalText(kind, data, old, of string) string {
	return `{"data":` + data +
		`,"database":"shop","es":1589373560000,"id":9,"isDdl":false,"mysqlType":{"id":"bigint(20)",` +
		`"v":"` + of + `"},"old":` + old + `,"pkNames":["id"],"sql":"","sqlType":{"id":-5,"v":12},"table":"orders",` +
		`"ts":1589373560798,"type":"` + kind + `"}` + "\n"
}

// kindsOf replaces names of kinds by their numbers in expected outputs of changesOf.
var kindsOf = strings.NewReplacer("INTEGER:", fmt.Sprint(record.Integer, ":"), "NULL:", fmt.Sprint(record.Null, ":"),
	"UNSIGNED:", fmt.Sprint(record.Unsigned, ":"), "DOUBLE:", fmt.Sprint(record.Double, ":"),
	"STRING:", fmt.Sprint(record.String, ":"), "BINARY:", fmt.Sprint(record.Binary, ":"))

func TestCanalValuesEqualDatabaseLoad(t *testing.T) {
	for _, c := range []struct{ of, value, want string }{
		{"tinyint(4)", `"-128"`, "INTEGER:-128"}, {"int(10) unsigned", `"4294967295"`, "INTEGER:4294967295"},
		{"bigint(20) unsigned", `"9223372036854775807"`, "UNSIGNED:9223372036854775807"},
		{"bigint(20) unsigned", `"18446744073709551615"`, "does not fit in 64 bits"}, {"year(4)", `"2026"`, "INTEGER:2026"},
		{"float", `"0.1"`, "DOUBLE:0.10000000149011612"}, {"double", `"1.0E-5"`, "DOUBLE:1e-05"},
		{"decimal(20,2)", `"10.50"`, "STRING:10.50"}, {"varchar(20)", `"\u00e9\n"`, "STRING:é\n"},
		{"date", `"0000-00-00"`, "STRING:0000-00-00"}, {"time(3)", `"-12:00:00.500"`, "STRING:-12:00:00.500"},
		{"datetime(3)", `"2020-05-13 16:26:08.120"`, "STRING:2020-05-13T16:26:08.120"},
		{"datetime", `"0000-00-00 00:00:00"`, "STRING:0000-00-00 00:00:00"}, {"varbinary(8)", `"\u0000ÿ"`, "BINARY:\x00\xff"},
		{"blob", `""`, "BINARY:"}, {"binary(4)", `"a"`, "BINARY:a\x00\x00\x00"}, {"text", `null`, "NULL:"},
		{"binary", `"a"`, "does not state the column's length"}, {"blob", `"中"`, "are not bytes"},
		{"timestamp", `"2020-05-13 16:26:08"`, "time zone"}, {"json", `"{}"`, "the server's exact text of json"},
		{"enum('a')", `"1"`, "the server's exact text of enum"}, {"bit(1)", `"1"`, "the server's exact text of bit"},
		{"int(11)", `"x"`, "not an integer"}, {"int(11)", `7`, "not an integer"}, {"double", `"x"`, "not a number"},
		{"text", `7`, "not a string"}, {"datetime", `"2020"`, "not a time"}, {"bigint unsigned", `"-1"`, "not an integer"},
		{"blob", `7`, "not a string"}, {"", `"x"`, "the server's exact text of ,"},
	} {
		t.Run(c.of+c.value, func(t *testing.T) {
			all, _ := changesOf(canalText("INSERT", `[{"id":"7","v":`+c.value+`}]`, "null", c.of), Changes{Form: CanalChanges})
			conformance.Equal(t, len(all), 1, "changes")
			conformance.Contains(t, strings.ToLower(all[0]), strings.ToLower(kindsOf.Replace(c.want)), "%s", c.of)
		})
	}
	all, _ := changesOf(canalText("INSERT", `[{"id":"7","v":"2020-05-13 16:26:08"}]`, "null", "timestamp"),
		Changes{Form: CanalChanges, Typed: func(name string) bool { return name == "v" }})
	conformance.Contains(t, all[0], "2020-05-13 16:26:08", "a type that the user has said")
}

func TestCanalMessagesWithSeveralRowsAreUnfolded(t *testing.T) {
	message := func(kind, data, old string) string { return canalText(kind, data, old, "text") }
	for _, c := range []struct{ name, text, want string }{
		{"rows", message("INSERT", `[{"id":"1","v":"a"},{"id":"2","v":null}]`, "null"), "put 1 v=STRING:a|put 2 v=NULL:"},
		{"updates", message("UPDATE", `[{"id":"1","v":"a"},{"id":"2","v":"b"}]`, `[{"v":"x"},{"v":null}]`),
			"update 1 v=STRING:a|update 2 v=STRING:b"},
		{"a key that changes", message("UPDATE", `[{"id":"1","v":"a"},{"id":"3","v":"b"}]`, `[{"v":"x"},{"id":"2"}]`),
			"update 1 v=STRING:a|delete 2 v=STRING:b|put 3 v=STRING:b"},
		{"of a minimal image", message("UPDATE", `[{"id":"3"}]`, `[{"id":"2"}]`), "BadChange: the update changes a column"},
		{"deletions", message("DELETE", `[{"id":"1","v":"a"},{"id":"2","v":"b"}]`, "null"),
			"delete 1 v=STRING:a|delete 2 v=STRING:b"},
		{"no rows", message("DELETE", `[]`, "null"), "BadChange: a change of type DELETE has no row"},
		{"too few before", message("UPDATE", `[{"id":"1"},{"id":"2"}]`, `[{"v":"x"}]`), "want one message per line"},
		{"unknown", message("MERGE", `[{"id":"1"}]`, "null"), `BadChange: unknown type "MERGE"`},
		{"no message", `{"id":1}` + "\n", "BadChange: want type, database and table"},
		{"no JSON", "{]\n", "BadJSON"},
		{"without types", strings.Replace(message("INSERT", `[{"id":"1"}]`, "null"), `"mysqlType"`, `"other"`, 1),
			"BadChange: the event does not state"},
	} {
		t.Run(c.name, func(t *testing.T) {
			all, _ := changesOf(unfolded(t, c.text, 1<<20), Changes{Form: CanalChanges})
			conformance.Contains(t, strings.Join(all, "|"), kindsOf.Replace(c.want), "%s", c.name)
		})
	}
}

func TestMaxwellUsesDeclaredTypes(t *testing.T) {
	message := func(kind, data, more string) string {
		return `{"database":"shop","table":"orders","type":"` + kind + `","ts":1589373560,"xid":23,"commit":true,"data":` +
			data + more + "}\n"
	}
	text := message("bootstrap-start", "{}", "") + message("bootstrap-insert", `{"id":1,"v":12345678901234567890.5}`,
		"") + message("bootstrap-complete", "{}", "") + message("insert", `{"id":2,"v":"a"}`, "") +
		message("update", `{"id":2,"v":null}`, `,"old":{"v":"a"}`) + message("update", `{"id":3,"v":"b"}`,
		`,"old":{"id":2},"primary_key_columns":["id"]`) + message("delete", `{"id":3,"v":"b"}`, "") +
		message("update", `{"id":3,"v":"b"}`, `,"old":{"id":2}`) +
		`{"type":"table-alter","database":"shop","table":"orders","old":{},"def":{},"sql":"alter table orders add x int"}`
	c := Changes{Form: MaxwellChanges, Table: "orders", Typed: func(string) bool { return true }}
	all, _ := changesOf(unfolded(t, text, 1<<20), c)
	for n, want := range []string{"put 1 v=2:12345678901234567890.5", "put 2 v=STRING:a", "update 2 v=NULL:",
		"delete 2 v=STRING:b", "put 3 v=STRING:b", "delete 3 v=STRING:b", "output_primary_key_columns", CodeDDL} {
		conformance.Contains(t, all[n], kindsOf.Replace(want), "change %d", n)
	}
	for _, of := range []string{`{"type":"database-drop","database":"shop","sql":"drop database shop"}`,
		`{"type":"table-drop","database":"shop","table":"x","sql":"drop table x, orders"}`} {
		all, _ = changesOf(of, c)
		conformance.Contains(t, all[0], CodeDDL, "%s", of)
	}
	p := NewParser(Options{Changes: c})
	p.Reset([]byte(message("insert", `{"id":2}`, "") +
		`{"type":"table-create","database":"shop","table":"x","ts":1589373560123}`))
	for _, ok := p.Next(); ok; {
		_, ok = p.Next()
	}
	_, at := p.Followed()
	conformance.Equal(t, at.Millis, 1589373560123, "statements have milliseconds")
	c.Typed = nil
	all, _ = changesOf(message("insert", `{"id":2,"v":null}`, ""), c)
	conformance.Contains(t, all[0], "give --type for each column: id, v", "no types")
}

func TestCanalStatementsThatMayChangeTableEndLoad(t *testing.T) {
	for _, c := range []struct {
		kind, table, sql string
		passes           bool
	}{
		{"CREATE", "orders", "create table orders (id int)", true}, {"CINDEX", "orders", "create index i on orders (v)",
			true}, {"ALTER", "customers", "alter table customers add x int", true},
		{"QUERY", "", "grant select on shop.* to bob", true},
		{"ALTER", "orders", "alter table orders add x int", false}, {"TRUNCATE", "orders", "truncate table orders", false},
		{"ERASE", "customers", "drop table customers, orders", false},
		{"RENAME", "x", "rename table `old_orders` to x", true},
		{"ALTER", "", "alter database shop charset utf8", false}, {"RENAME", "customers", "rename table customers to orders",
			false}, {"QUERY", "", "/* x */ INSERT INTO t SELECT 1", false}, {"QUERY", "", "update other set v = 1", false},
	} {
		text := fmt.Sprintf(`{"database":"shop","table":%q,"isDdl":true,"type":%q,"sql":%q,"data":null}`+"\n", c.table,
			c.kind, c.sql)
		all, others := changesOf(text, Changes{Form: CanalChanges, Table: "orders"})
		passed := len(all) == 0 && others == 1
		conformance.True(t, passed == c.passes && (passed || strings.HasPrefix(all[0], CodeDDL)), "%s: %q", text, all)
	}
}

func TestStatementsMatchWholeTableNames(t *testing.T) {
	for name, sql := range map[string]string{"订单": "rename table `订单` to `a_订单`, `b_订单` to `订单`", "$a": "drop table $a"} {
		text := fmt.Sprintf(`{"database":"shop","table":"x","isDdl":true,"type":"RENAME","sql":%q}`, sql)
		all, _ := changesOf(text, Changes{Form: CanalChanges, Table: name})
		conformance.True(t, len(all) == 1 && strings.HasPrefix(all[0], CodeDDL), "%s: %q", text, all)
	}
}

func TestUpdateOfOmittedColumnsIsSkipped(t *testing.T) {
	c := Changes{Form: CanalChanges, Without: func(name string) bool { return name == "v" }}
	all, others := changesOf(canalText("UPDATE", `[{"id":"1","v":"{}"}]`, `[{"v":"[]"}]`, "json"), c)
	conformance.True(t, len(all) == 0 && others == 0, "%q, %d others", all, others)
}

// TestFormGuessIsStable guesses the format of a message whose columns are named like members of other formats.
func TestFormGuessIsStable(t *testing.T) {
	text := strings.ReplaceAll(canalText("INSERT", `[{"id":"1","xid":"2","op":"c","source":"x"}]`, "null", "text"),
		`"v":"text"`, `"xid":"int","op":"text","source":"text"`)
	for range 20 {
		form, name, why := GuessChanges([]byte(text), Lines, NoChanges)
		conformance.MustTrue(t, form == CanalChanges && name == "shop.orders", "form %d, table %q, %s", form, name, why)
	}
	form, _, _ := GuessChanges([]byte(text), Lines, MaxwellChanges)
	conformance.Equal(t, form, NoChanges, "messages of canal as those of Maxwell: form")
}

func TestUnfoldingKeepsLinesThatAreNotMessages(t *testing.T) {
	long := `{"data":[{"id":"` + strings.Repeat("x", 200_000) + `"},{"id":"2"}]}` + "\n"
	for _, text := range []string{"", "\n", "x", "{}\n{}", long,
		long + canalText("INSERT", `[{"id":"1"}]`, "null", "text"), "[1,2]\n" +
			canalText("DELETE", `[{"id":"1"}]`, "null", "text")} {
		conformance.Equal(t, unfolded(t, text, 100_000), text, "text")
	}
	many := canalText("INSERT", `[{"id":"1"},{"id":"2"},{"id":"3"}]`, "null", "text")
	conformance.Equal(t, strings.Count(unfolded(t, long+many+"x", 100_000), "\n"), 4, "lines")
	var rows []string
	for i := range 5_000 {
		rows = append(rows, fmt.Sprintf(`{"id":"%d"}`, i))
	}
	all, _ := changesOf(unfolded(t, canalText("INSERT", "["+strings.Join(rows, ",")+"]", "null", "text"), 1<<20),
		Changes{Form: CanalChanges})
	conformance.Equal(t, len(slices.Compact(all)), 5_000, "rows")
}
