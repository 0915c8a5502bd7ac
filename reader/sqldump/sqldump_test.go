package sqldump

import (
	"fmt"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/record"
)

func TestStatementsAgreeWithDatabase(t *testing.T) {
	postgres, mysql := Syntax{Quote: '"', Dollars: true}, Syntax{Quote: '`', Backslash: true, Hash: true}
	for _, tt := range []struct {
		s          Syntax
		text, want string
	}{
		{postgres, `SELECT "a""b", 'it''s;', E'\';', $x$;$y$;$x$ -- ;` + "\n/* ; /* ; */ ; */ x;",
			`SELECT [a"b] , ['it''s;'] , E [E'] , [$x$;$y$;$x$] x ;`},
		{postgres, `a$1, $1 'x\'`, `a$1 , $1 ['x\']`},
		{mysql, "SELECT `a``b`, 'it\\'s;', \"x\\\";\" # ;\n/* ; */ 5;", "SELECT [a`b] , ['it\\'s;'] , [\"x\\\";\"] 5 ;"},
		{mysql, "'a", "['a]"}, {mysql, "/* x", ""}, {postgres, "$x$ y", "[$x$ y]"},
	} {
		var got []string
		for _, token := range Tokens([]byte(tt.text), tt.s) {
			if token.Quoted {
				token.Text = "[" + token.Text + "]"
			}
			got = append(got, token.Text)
		}
		conformance.Equal(t, strings.Join(got, " "), strings.ReplaceAll(tt.want, "E [E']", `E ['\';']`), "%s", tt.text)
		for n := range tt.text { // it must end at the same place if read line by line
			if n > 0 && tt.text[n-1] != '\n' {
				continue
			}
			l := Lexer{Syntax: tt.s}
			end := l.End([]byte(tt.text[:n]))
			conformance.True(t, end < 0, "%s ends at %d", tt.text[:n], end)
			if end := l.End([]byte(tt.text)); strings.HasSuffix(tt.text, ";") != (end == len(tt.text)) {
				t.Errorf("%s in pieces of %d ends at %d", tt.text, n, end)
			}
		}
	}
}

func TestTableIsChosenByName(t *testing.T) {
	var d Dump
	for i, name := range []string{"a.t", "b.t", "b.u"} {
		of := d.Add(name)
		of.Columns, of.Rows = []Column{{Name: "x", Kind: record.Integer}}, int64(i)
	}
	wide := d.Add("wide")
	names := make([]string, MaxColumns+1)
	for i := range names {
		names[i] = fmt.Sprint("c", i)
	}
	wide.Arrange(names)
	for name, want := range map[string]string{
		"": "2 tables with rows: b.t, b.u", "t": "--source-table t matches several tables: a.t, b.t", "a.t": "", "u": "",
		"x": "no such table; it has a.t, b.t, b.u, wide", "wide": "4097 columns",
	} {
		of, err := d.Choose(name)
		conformance.True(t, (want != "" || err == nil && of != nil) &&
			(want == "" || err != nil && strings.Contains(err.Error(), want)), "%q: %v, %v, want %q", name, of, err, want)
	}
	var odd Dump
	for i, name := range []string{`"S.x"."T.1"`, `s."We""ird"`, `"a.b"`, "a.b", "s.c", `"s.c".c`} {
		of := odd.Add(name)
		of.Columns, of.Rows = []Column{{Name: "x", Kind: record.Integer}}, int64(i)
	}
	for name, want := range map[string]string{`"S.x"."T.1"`: `"S.x"."T.1"`, "S.x.T.1": `"S.x"."T.1"`, "T.1": `"S.x"."T.1"`,
		`"T.1"`: `"S.x"."T.1"`, `We"ird`: `s."We""ird"`, `"We""ird"`: `s."We""ird"`,
		"a.b": "a.b", `"a.b"`: `"a.b"`, "s.c": "s.c"} {
		of, err := odd.Choose(name)
		conformance.True(t, err == nil && of.Name == want, "%s: %v, %v, want %s", name, of, err, want)
	}
	conformance.Refused(t, conformance.ErrorOf(odd.Choose("c")), `s.c, "s.c".c`, "error")
	conformance.Refused(t, conformance.ErrorOf(new(Dump).Choose("")), "holds no rows (tables: none)", "error")
	for i := range 30 {
		d.Add(fmt.Sprint("more", i)).Rows = 1
	}
	if text := d.Describe(d.Find("a.t")); !strings.Contains(text,
		"skipped: 33 other tables with 33 rows (b.t 1, b.u 2, more0 1") || !strings.Contains(text, "12 more)") {
		t.Error(text)
	}
}

func TestNumbersAreExactOrRefused(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "-0": "-0", "0.0": "0", "0e0": "0", "1.5": "1.5", "-1e308": "-1e+308",
		"1.7976931348623157e+308": "1.7976931348623157e+308", "2.2250738585072014e-308": "2.2250738585072014e-308",
		"5e-324": "5e-324", "0.30000000000000004": "0.30000000000000004", "NaN": "NaN", "-Infinity": "-Inf",
		"123456789012345": "1.23456789012345e+14", "1e400": "it is too large", "1e-400": "it is too small for a double",
		"-0.0001e-400": "it is too small for a double", "1.2345e-320": "it has more digits than a double keeps",
		"12345678901234567891": "it has more digits than a double keeps", "": "want a number", "x": "want a number",
		"0x1p4": "want a number", "-0x1p4": "want a number", "1_0": "want a number", "1 ": "want a number",
	} {
		f, err := Double([]byte(text), false)
		got := fmt.Sprint(f)
		if err != nil {
			got = err.Error()
		}
		conformance.Equal(t, got, want, "%q", text)
	}
	for text, want := range map[string]string{"-9223372036854775808": "-9223372036854775808",
		"9223372036854775808": "it is too large", "1.0": "want an integer", "": "want an integer", "0x1": "want an integer"} {
		n, err := Integer(text)
		got := fmt.Sprint(n)
		if err != nil {
			got = err.Error()
		}
		conformance.Equal(t, got, want, "%q", text)
	}
	f, err := Double([]byte("0.1"), true)
	conformance.True(t, err == nil && f == float64(float32(0.1)), "the single 0.1 is %v, %v", f, err)
	conformance.Equal(t, conformance.Try(Unsigned("18446744073709551615")).Must(t), 1<<64-1, "result")
	_, err = Unsigned("-1")
	conformance.True(t, err == errInteger, "%v", err)
}
