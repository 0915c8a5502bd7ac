package csv

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
)

// settled returns a program's dialect as it is found out by the text.
func settled(t *testing.T, name, text string, header bool) Dialect {
	t.Helper()
	d, _, ok := Named(name)
	if !ok {
		t.Fatalf("%s is not known", name)
	}
	if _, _, err := d.Settle([]byte(text), header); err != nil {
		t.Fatal(err)
	}
	conformance.Must(t, d.Check())
	return d
}

func TestDumpsAreReadAsTheirProgramsReadThem(t *testing.T) {
	for name, tt := range map[string]struct {
		program string
		header  bool
		text    string
		want    [][]string
	}{
		"MySQL's client":                    {mysql, true, "a\tb\n1\tx\\ty\\nz\\0\\\\\r\n2\tNULL\n\\\\N\t\n", [][]string{{"a", "b"}, {"1", "x\ty\nz\x00\\\r"}, {"2", "∅"}, {"\\N", ""}}},
		"MySQL's server":                    {mysql, false, "1\tx\\\ty\\\nz\\0\\\\\r\n2\tNULL\n3\t\\N\n", [][]string{{"1", "x\ty\nz\x00\\\r"}, {"2", "NULL"}, {"3", "∅"}}},
		"MySQL's client without a header":   {mysql, false, "1\tNULL\n2\t\\\\N\n3\tx\\ny\n", [][]string{{"1", "∅"}, {"2", "\\N"}, {"3", "x\ny"}}},
		"MySQL's server with a header":      {mysql, true, "a\tb\n1\tNULL\n2\t\\N\n", [][]string{{"a", "b"}, {"1", "NULL"}, {"2", "∅"}}},
		"MySQL with signs of both":          {mysql, true, "1\tNULL\n2\tx\\ny\n3\tx\\\ty\n", [][]string{{table.CodeEscape}, {"2", "x\ny"}, {"3", "x\ty"}}},
		"MySQL without a sign of either":    {mysql, false, "1\tNULL\n2\t\\\\N\n", [][]string{{table.CodeEscape}, {"2", "\\N"}}},
		"\\N in what MySQL's client writes": {mysqlBatch, false, "\\N\n", [][]string{{table.CodeEscape}}},
		"MySQL's other escapes":             {mysqlTab, false, "\\b\\r\\Z\\q\\N\n", [][]string{{"\b\r\x1aqN"}}},
		"MySQL with Windows line ends":      {mysql, true, "a\tb\r\n1\tx\r\r\n", [][]string{{"a", "b"}, {"1", "x\r"}}},
		"empty lines of MySQL":              {mysql, true, "a\n\nb\n", [][]string{{"a"}, {""}, {"b"}}},

		"PostgreSQL":               {postgres, false, "1\ta\\tb\\nc\\r\\\\\\b\\f\\v\n2\t\\N\n3\tNULL\n\\.\n", [][]string{{"1", "a\tb\nc\r\\\b\f\v"}, {"2", "∅"}, {"3", "NULL"}}},
		"PostgreSQL's digits":      {postgres, false, "\\101\\1018\\x41\\x4G\\xg\\q\\\tb\n", [][]string{{"AA8A\x04Gxgq\tb"}}},
		"PostgreSQL with CR LF":    {postgres, false, "1\ta\\r\r\n\\.\r\n", [][]string{{"1", "a\r"}}},
		"an escaped end mark":      {postgres, false, "\\\\.\n\\.\n", [][]string{{"\\."}}},
		"a line end as data":       {postgres, false, "a\\\nb\tc\n", [][]string{{"a\nb", "c"}}},
		"CSV of PostgreSQL":        {postgresCSV, false, "1,,\"\",\"\\.\",\\N,\"a\nb\"\n\"\\.\"\n\n\\.\n", [][]string{{"1", "", "“”", "“\\.”", "\\N", "“a\nb”"}, {"“\\.”"}, {""}}},
		"ClickHouse":               {clickHouse, true, "1\ta\\tb\\nc\\'d\\\\e\\0\\b\\f\\r\n\\N\t\n", [][]string{{"1", "a\tb\nc'd\\e\x00\b\f\r"}, {"∅", ""}}},
		"ClickHouse's other pairs": {clickHouse, true, "100\\%\\d\\x41\\a\\e\\v\\/\\\"\n\\xZZ\na\\Nb\n", [][]string{{"100\\%\\dA\a\x1b\v/\""}, {table.CodeEscape}, {table.CodeEscape}}},
		"CSV of ClickHouse":        {clickHouseCSV, true, "1,\"a\"\"b\\n\",\\N,\"\\N\"\n", [][]string{{"1", "“a\"b\\n”", "∅", "“\\N”"}}},

		"Hive":                          {hive, false, "1\x01a\\\\b\\nc\\rd\\\x01\x01\\N\n\\\\N\x01\n", [][]string{{"1", "a\\b\nc\rd\x01", "∅"}, {"\\N", ""}}},
		"Hive without ESCAPED BY":       {hive, false, "1\x01C:\\new\\temp\x01\\N\n2\x01x\\\x01y\\\n", [][]string{{"1", "C:\\new\\temp", "∅"}, {"2", "x\\", "y\\"}}},
		"Hive without a sign of either": {hive, false, "1\x01C:\\new\n2\x01\\N\n", [][]string{{table.CodeEscape}, {"2", "∅"}}},
		"what Hive does not write":      {hiveEscaped, false, "a\\tb\nc\\\n", [][]string{{table.CodeEscape}, {"c\\"}}},

		"Excel":                  {excel, true, "sep=;\r\na;b\r\n1,5;\"x\ny\"\r\n", [][]string{{"sep=", ""}, {"a", "b"}, {"1,5", "“x\ny”"}}},
		"Excel without sep=":     {excel, true, "a;b\r\n1,5;2\r\n3,5;4\r\n", [][]string{{"a", "b"}, {"1,5", "2"}, {"3,5", "4"}}},
		"SQLite's CSV":           {sqlite, true, "a,b\r\n,\"\"\r\n\"x\r\ny\",'\r\n\r\n", [][]string{{"a", "b"}, {"", "“”"}, {"“x\r\ny”", "'"}, {""}}},
		"SQLite's list of SQL":   {sqliteQuote, true, "'a','b'\n1,NULL\n-2.5,'NULL'\nX'00ff','it''s\n\\n'\nX'',''\n", [][]string{{"“a”", "“b”"}, {"#1", "∅"}, {"#-2.5", "“NULL”"}, {"<00ff>", "“it's\n\\n”"}, {"<>", "“”"}}},
		"a blob of half a digit": {sqliteQuote, true, "X'0'\nX'zz'\n1\n", [][]string{{table.CodeEscape}, {table.CodeEscape}, {"#1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			d := settled(t, tt.program, tt.text, tt.header)
			for _, size := range []int{1, 2, 3, 5, 8, 1000} {
				if diff := cmp.Diff(tt.want, fields(recordsOf(d, []byte(tt.text), size))); diff != "" {
					t.Errorf("chunks of %d (-want +got):\n%s", size, diff)
				}
			}
		})
	}
}

func TestALineEndThatMayBeDataIsRefused(t *testing.T) {
	d, _, _ := Named(mysql)
	_, _, err := d.Settle([]byte("1\ta\r\n2\tb\r\n"), false)
	conformance.Refused(t, err, "--record-end", "error")
}

func TestFlagsNameADialectExactly(t *testing.T) {
	for _, name := range Programs {
		d, _, _ := Named(name)
		if d.Delimiter == "" {
			d.Delimiter = ";"
		}
		flags := strings.Join(d.Flags(), " ")
		if !strings.HasPrefix(flags, "--dialect "+name+" --delimiter ") || strings.ContainsAny(flags, "\t\n\x01") {
			t.Errorf("%s: %q", name, flags)
		}
	}
	d := Dialect{Delimiter: "\x01", Quote: '\'', Comment: "#", RecordEnd: "~\n"}
	if got := strings.Join(d.Flags(), " "); got != `--delimiter \x01 --quote ' --escape none --comment # --record-end ~\n` {
		t.Errorf("%s", got)
	}
	for a := range 256 {
		for _, text := range []string{string([]byte{byte(a)}), string([]byte{byte(a), 'x'}), string([]byte{'x', byte(a)}), string([]byte{byte(a), byte(a)})} {
			if again, err := Unescape(escaped(text)); err != nil || again != text {
				t.Errorf("%q is written as %s, which is %q, %v", text, escaped(text), again, err)
			}
		}
	}
}

func TestADialectIsFoundOrRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		text, delimiter string
		quote, escape   byte
		refused         string // in the error
	}{
		"commas":                      {"a,b\n1,2\n3,4\n", ",", '"', 0, ""},
		"semicolons":                  {"a;b\n1;2\n", ";", '"', 0, ""},
		"tabs":                        {"a\tb\n1\t2,5\n", "\t", '"', 0, ""},
		"bars with commas in text":    {"a|b\nx, y|2\nz|3\n", "|", '"', 0, ""},
		"control A":                   {"a\x01b\n1\x012\n", "\x01", '"', 0, ""},
		"quoted delimiters":           {"a;b\n\"1;2\";3\n", ";", '"', 0, ""},
		"single quotes":               {"a,b\n'1,2',3\n'4',5\n", ",", '\'', 0, ""},
		"backslash escapes":           {"a,b\n\"x\\\",y\",3\n\"z\",4\n", ",", '"', '\\', ""},
		"one column":                  {"a\nb\nc\n", ",", '"', 0, ""},
		"empty":                       {"", ",", '"', 0, ""},
		"a cut last record":           {"a,b\n1,2\n3", ",", '"', 0, ""},
		"a cut quoted record":         {"id;a;b\r\n1;\"x;\n1\";y,1\r\n2;\"x;\n2\";y,2\r\n3;\"x;\n", ";", '"', 0, ""},
		"decimal commas or semicolon": {"a,b;c,d\n1,2;3,4\n", "", 0, 0, "2 ways"},
		"quotes that may be text":     {"a,b\n'x',1\n'y',2\n", "", 0, 0, "2 ways"},
		"a column in quotes":          {"id,v\n1,\"a\"\n2,\"b\"\n", ",", '"', 0, ""},
		"names in quotes":             {"\"id\";\"v\"\n1;2,5\n2;3,5\n", ";", '"', 0, ""},
		"apostrophes":                 {"id,v\n1,it's\n2,'tis o'clock\n", ",", '"', 0, ""},
		"a fault beside one quote":    {"id,v\n1,\"a\" \n2,\"b\"\n", "", 0, 0, "2 ways"},
		"a fault beside many quotes":  {"id,v\n1,\"a\" \n" + strings.Repeat("2,\"b\"\n", 10), ",", '"', 0, ""},
		"a title before the header":   {"report\na,b\n1,2\n3,4\n", "", 0, 0, "records have 2 fields but the first one"},
		"escaped quotes in two":       {"a,b\n\"x\\\",y\",3\n\"z\\\",w\",4\n\"q\",5\n", ",", '"', '\\', ""},
		"apostrophes, one at edges":   {"id,v\n" + strings.Repeat("1,it's\n", 9) + "2,'q'\n", ",", '"', 0, ""},
		"two kinds of quotes":         {"id,v\n" + strings.Repeat("\"a\",'b'\n", 9), "", 0, 0, "2 ways"},
		"quotes here and there":       {"id,v\n" + strings.Repeat("1,\"a\"\n2,b\n", 8), ",", '"', 0, ""},
		"single quotes throughout":    {"'a','b'\n'1','2'\n", ",", '\'', 0, ""},
		"names in quotes, and inches": {"\"id\",\"v\"\n" + strings.Repeat("1,5\" disk\n", 5), "", 0, 0, "2 ways"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Sniff([]byte(tt.text), true)
			if (err != nil) != (tt.refused != "") || err != nil && !strings.Contains(err.Error(), tt.refused) {
				t.Fatalf("%v, %v", d, err)
			}
			if err == nil && (d.Delimiter != tt.delimiter || d.Quote != tt.quote || d.Escape != tt.escape) {
				t.Errorf("%v", d)
			}
		})
	}
}

func TestLineEndsAreDetected(t *testing.T) {
	for text, want := range map[string]byte{
		"": '\n', "a": '\n', "a\nb": '\n', "a\r\nb\r\n": '\n', "a\rb\rc": '\r', "\"a\nb\"\rc\rd": '\r', "a\rb\nc": '\n', "a\r": '\n',
	} {
		conformance.Equal(t, DetectEOL([]byte(text), '"'), want, "%q", text)
	}
	conformance.Equal(t, DetectEOL([]byte("a\r'b\nc'\r"), '\''), '\r', "a line feed in single quotes")
	conformance.Equal(t, DetectEOL([]byte("a\r5\"\nc\n"), 0), '\n', "a quote that is text")
}
