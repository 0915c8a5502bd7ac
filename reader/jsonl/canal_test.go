package jsonl

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/record"
)

func unfolded(t *testing.T, text string, longest int) string {
	t.Helper()
	all := conformance.Try(io.ReadAll(UnfoldCanal(strings.NewReader(text), longest))).Must(t)
	return string(all)
}

// canalText is a canal message for a table shop.orders, as in its documentation.
func canalText(kind, data, old, of string) string {
	return `{"data":` + data + `,"database":"shop","es":1589373560000,"id":9,"isDdl":false,"mysqlType":{"id":"bigint(20)","v":"` + of + `"},"old":` + old +
		`,"pkNames":["id"],"sql":"","sqlType":{"id":-5,"v":12},"table":"orders","ts":1589373560798,"type":"` + kind + `"}` + "\n"
}

// kindsOf replaces the names of kinds in the output of changesOf.
var kindsOf = strings.NewReplacer("=STRING", fmt.Sprint("=", record.String), "=NULL", fmt.Sprint("=", record.Null), "INTEGER:", fmt.Sprint(record.Integer, ":"),
	"UNSIGNED:", fmt.Sprint(record.Unsigned, ":"), "DOUBLE:", fmt.Sprint(record.Double, ":"), "STRING:", fmt.Sprint(record.String, ":"), "BINARY:", fmt.Sprint(record.Binary, ":"), "NULL:", fmt.Sprint(record.Null, ":"))

func TestCanalValuesEqualDatabaseLoad(t *testing.T) {
	for _, c := range []struct{ of, value, want string }{
		{"tinyint(4)", `"-128"`, "INTEGER:-128"}, {"int(10) unsigned", `"4294967295"`, "INTEGER:4294967295"}, {"bigint(20) unsigned", `"9223372036854775807"`, "UNSIGNED:9223372036854775807"}, {"bigint(20) unsigned", `"18446744073709551615"`, "does not fit in 64 bits"},
		{"year(4)", `"2026"`, "INTEGER:2026"}, {"float", `"0.1"`, "DOUBLE:0.10000000149011612"}, {"double", `"1.0E-5"`, "DOUBLE:1e-05"}, {"decimal(20,2)", `"10.50"`, "STRING:10.50"},
		{"varchar(20)", `"\u00e9\n"`, "STRING:é\n"}, {"date", `"0000-00-00"`, "STRING:0000-00-00"}, {"time(3)", `"-12:00:00.500"`, "STRING:-12:00:00.500"},
		{"datetime(3)", `"2020-05-13 16:26:08.120"`, "STRING:2020-05-13T16:26:08.120"}, {"datetime", `"0000-00-00 00:00:00"`, "STRING:0000-00-00 00:00:00"},
		{"varbinary(8)", `"\u0000ÿ"`, "BINARY:\x00\xff"}, {"blob", `""`, "BINARY:"}, {"binary(4)", `"a"`, "BINARY:a\x00\x00\x00"}, {"text", `null`, "NULL:"},
		{"binary", `"a"`, "does not say how many bytes"}, {"blob", `"中"`, "stand for no byte"}, {"timestamp", `"2020-05-13 16:26:08"`, "time zone"}, {"json", `"{}"`, "the server's text of json"},
		{"enum('a')", `"1"`, "the server's text of enum"}, {"bit(1)", `"1"`, "the server's text of bit"}, {"int(11)", `"x"`, "whole number"}, {"int(11)", `7`, "whole number"}, {"double", `"x"`, "no number"},
		{"text", `7`, "no string"}, {"datetime", `"2020"`, "no time"}, {"bigint unsigned", `"-1"`, "whole number"}, {"blob", `7`, "no string"}, {"", `"x"`, "the server's text of  exactly"},
	} {
		t.Run(c.of+c.value, func(t *testing.T) {
			all, _ := changesOf(canalText("INSERT", `[{"id":"7","v":`+c.value+`}]`, "null", c.of), Changes{Form: CanalChanges})
			conformance.Equal(t, len(all), 1, "changes")
			conformance.Contains(t, strings.ToLower(all[0]), strings.ToLower(kindsOf.Replace(c.want)), "%s", c.of)
		})
	}
	all, _ := changesOf(canalText("INSERT", `[{"id":"7","v":"2020-05-13 16:26:08"}]`, "null", "timestamp"), Changes{Form: CanalChanges, Typed: func(name string) bool { return name == "v" }})
	conformance.Contains(t, all[0], "2020-05-13 16:26:08", "a type that the user has said")
}

func TestCanalMessagesHaveManyRows(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"rows", canalText("INSERT", `[{"id":"1","v":"a"},{"id":"2","v":null}]`, "null", "text"), "put 1 v=STRING:a|put 2 v=NULL:"},
		{"updates", canalText("UPDATE", `[{"id":"1","v":"a"},{"id":"2","v":"b"}]`, `[{"v":"x"},{"v":null}]`, "text"), "update 1 v=STRING:a|update 2 v=STRING:b"},
		{"a key that changes", canalText("UPDATE", `[{"id":"1","v":"a"},{"id":"3","v":"b"}]`, `[{"v":"x"},{"id":"2"}]`, "text"), "update 1 v=STRING:a|delete 2 v=STRING:b|put 3 v=STRING:b"},
		{"of a minimal image", canalText("UPDATE", `[{"id":"3"}]`, `[{"id":"2"}]`, "text"), "BadChange: the update changes a column"},
		{"deletions", canalText("DELETE", `[{"id":"1","v":"a"},{"id":"2","v":"b"}]`, "null", "text"), "delete 1 v=STRING:a|delete 2 v=STRING:b"},
		{"no rows", canalText("DELETE", `[]`, "null", "text"), "BadChange: a change DELETE has no row"},
		{"too few before", canalText("UPDATE", `[{"id":"1"},{"id":"2"}]`, `[{"v":"x"}]`, "text"), "BadChange: want messages line by line"},
		{"unknown", canalText("MERGE", `[{"id":"1"}]`, "null", "text"), `BadChange: type "MERGE" is not known`},
		{"no message", `{"id":1}` + "\n", "BadChange: want type, database and table"},
		{"no JSON", "{]\n", "BadJSON"},
		{"without types", strings.Replace(canalText("INSERT", `[{"id":"1"}]`, "null", "text"), `"mysqlType"`, `"other"`, 1), "BadChange: the event does not say"},
	} {
		t.Run(c.name, func(t *testing.T) {
			all, _ := changesOf(unfolded(t, c.text, 1<<20), Changes{Form: CanalChanges})
			conformance.Contains(t, strings.Join(all, "|"), kindsOf.Replace(c.want), "%s", c.name)
		})
	}
}

func TestMaxwellUsesDeclaredTypes(t *testing.T) {
	message := func(kind, data, more string) string {
		return `{"database":"shop","table":"orders","type":"` + kind + `","ts":1589373560,"xid":23,"commit":true,"data":` + data + more + "}\n"
	}
	text := message("bootstrap-start", "{}", "") + message("bootstrap-insert", `{"id":1,"v":12345678901234567890.5}`, "") + message("bootstrap-complete", "{}", "") + message("insert", `{"id":2,"v":"a"}`, "") +
		message("update", `{"id":2,"v":null}`, `,"old":{"v":"a"}`) + message("update", `{"id":3,"v":"b"}`, `,"old":{"id":2},"primary_key_columns":["id"]`) + message("delete", `{"id":3,"v":"b"}`, "") +
		message("update", `{"id":3,"v":"b"}`, `,"old":{"id":2}`) + `{"type":"table-alter","database":"shop","table":"orders","old":{},"def":{},"sql":"alter table orders add x int"}`
	c := Changes{Form: MaxwellChanges, Table: "orders", Typed: func(string) bool { return true }}
	all, _ := changesOf(unfolded(t, text, 1<<20), c)
	for i, want := range []string{"put 1 v=2:12345678901234567890.5", "put 2 v=STRING:a", "update 2 v=NULL:", "delete 2 v=STRING:b", "put 3 v=STRING:b", "delete 3 v=STRING:b", "output_primary_key_columns", CodeDDL} {
		conformance.Contains(t, all[i], kindsOf.Replace(want), "change %d", i)
	}
	for _, of := range []string{`{"type":"database-drop","database":"shop","sql":"drop database shop"}`, `{"type":"table-drop","database":"shop","table":"x","sql":"drop table x, orders"}`} {
		all, _ = changesOf(of, c)
		conformance.Contains(t, all[0], CodeDDL, "%s", of)
	}
	p := NewParser(Options{Changes: c})
	p.Reset([]byte(message("insert", `{"id":2}`, "") + `{"type":"table-create","database":"shop","table":"x","ts":1589373560123}`))
	for _, ok := p.Next(); ok; {
		_, ok = p.Next()
	}
	_, at := p.Followed()
	conformance.Equal(t, at.Millis, 1589373560123, "statements have milliseconds")
	c.Typed = nil
	all, _ = changesOf(message("insert", `{"id":2}`, ""), c)
	conformance.Contains(t, all[0], "say the column's type", "no types")
}

func TestCanalStatementsThatMayChangeTableEndLoad(t *testing.T) {
	for _, c := range []struct {
		kind, table, sql string
		passes           bool
	}{
		{"CREATE", "orders", "create table orders (id int)", true}, {"CINDEX", "orders", "create index i on orders (v)", true}, {"ALTER", "customers", "alter table customers add x int", true},
		{"QUERY", "", "grant select on shop.* to bob", true}, {"ALTER", "orders", "alter table orders add x int", false}, {"TRUNCATE", "orders", "truncate table orders", false},
		{"ERASE", "customers", "drop table customers, orders", false}, {"RENAME", "x", "rename table `old_orders` to x", true}, {"ALTER", "", "alter database shop charset utf8", false}, {"RENAME", "customers", "rename table customers to orders", false}, {"QUERY", "", "/* x */ INSERT INTO t SELECT 1", false},
		{"QUERY", "", "update other set v = 1", false},
	} {
		text := fmt.Sprintf(`{"database":"shop","table":%q,"isDdl":true,"type":%q,"sql":%q,"data":null}`+"\n", c.table, c.kind, c.sql)
		all, others := changesOf(text, Changes{Form: CanalChanges, Table: "orders"})
		if passed := len(all) == 0 && others == 1; passed != c.passes || !passed && !strings.HasPrefix(all[0], CodeDDL) {
			t.Errorf("%s: %q, %d others", text, all, others)
		}
	}
}

func TestNamesInStatementsMatchWholeWords(t *testing.T) {
	for name, sql := range map[string]string{"订单": "rename table `订单` to `old_订单`, `new_订单` to `订单`", "$a": "drop table $a"} {
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

// TestFormGuessIsStable has columns with the member names of other forms.
func TestFormGuessIsStable(t *testing.T) {
	text := strings.ReplaceAll(canalText("INSERT", `[{"id":"1","xid":"2","op":"c","source":"x"}]`, "null", "text"), `"v":"text"`, `"xid":"int","op":"text","source":"text"`)
	for range 20 {
		form, name, why := GuessChanges([]byte(text), Lines, NoChanges)
		conformance.MustTrue(t, form == CanalChanges && name == "shop.orders", "form %d, table %q, %s", form, name, why)
	}
	form, _, _ := GuessChanges([]byte(text), Lines, MaxwellChanges)
	conformance.Equal(t, form, NoChanges, "messages of canal as those of Maxwell: form")
}

func TestUnfoldingKeepsLinesThatAreNotMessages(t *testing.T) {
	long := `{"data":[{"id":"` + strings.Repeat("x", 200_000) + `"},{"id":"2"}]}` + "\n"
	for _, text := range []string{"", "\n", "x", "{}\n{}", long, long + canalText("INSERT", `[{"id":"1"}]`, "null", "text"), "[1,2]\n" + canalText("DELETE", `[{"id":"1"}]`, "null", "text")} {
		conformance.Equal(t, unfolded(t, text, 100_000), text, "text")
	}
	many := canalText("INSERT", `[{"id":"1"},{"id":"2"},{"id":"3"}]`, "null", "text")
	conformance.Equal(t, strings.Count(unfolded(t, long+many+"x", 100_000), "\n"), 4, "lines")
	var rows []string
	for i := range 5_000 {
		rows = append(rows, fmt.Sprintf(`{"id":"%d"}`, i))
	}
	all, _ := changesOf(unfolded(t, canalText("INSERT", "["+strings.Join(rows, ",")+"]", "null", "text"), 1<<20), Changes{Form: CanalChanges})
	conformance.Equal(t, len(slices.Compact(all)), 5_000, "rows")
}
