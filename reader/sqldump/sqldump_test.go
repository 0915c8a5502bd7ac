package sqldump

import (
	"fmt"
	"strings"
	"testing"

	"tsimport/reader/record"
)

func TestStatementsAreReadAsTheirDatabaseReadsThem(t *testing.T) {
	postgres, mysql := Syntax{Quote: '"', Dollars: true}, Syntax{Quote: '`', Backslash: true, Hash: true}
	for _, tt := range []struct {
		s          Syntax
		text, want string
	}{
		{postgres, `SELECT "a""b", 'it''s;', E'\';', $x$;$y$;$x$ -- ;` + "\n/* ; /* ; */ ; */ x;", `SELECT [a"b] , ['it''s;'] , E [E'] , [$x$;$y$;$x$] x ;`},
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
		want := strings.ReplaceAll(tt.want, "E [E']", `E ['\';']`)
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", tt.text, strings.Join(got, " "), want)
		}
		for n := range tt.text { // line by line it ends where it ends
			if n > 0 && tt.text[n-1] != '\n' {
				continue
			}
			l := Lexer{Syntax: tt.s}
			if end := l.End([]byte(tt.text[:n])); end >= 0 {
				t.Errorf("%s ends at %d", tt.text[:n], end)
			}
			if end := l.End([]byte(tt.text)); strings.HasSuffix(tt.text, ";") != (end == len(tt.text)) {
				t.Errorf("%s in pieces of %d ends at %d", tt.text, n, end)
			}
		}
	}
}

func TestATableIsChosenByItsName(t *testing.T) {
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
	wide.Arrange(names, record.Text)
	for name, want := range map[string]string{
		"": "2 tables with rows: b.t, b.u", "t": "--source-table t: the dump has a.t, b.t", "a.t": "", "u": "", "x": "no such table; it has a.t, b.t, b.u, wide", "wide": "4097 columns",
	} {
		of, err := d.Choose(name)
		if want == "" && (err != nil || of == nil) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, %v, want %q", name, of, err, want)
		}
	}
	var odd Dump
	for i, name := range []string{`"S.x"."T.1"`, `s."We""ird"`, `"a.b"`, "a.b", "s.c", `"s.c".c`} {
		of := odd.Add(name)
		of.Columns, of.Rows = []Column{{Name: "x", Kind: record.Integer}}, int64(i)
	}
	for name, want := range map[string]string{`"S.x"."T.1"`: `"S.x"."T.1"`, "S.x.T.1": `"S.x"."T.1"`, "T.1": `"S.x"."T.1"`, `"T.1"`: `"S.x"."T.1"`, `We"ird`: `s."We""ird"`, `"We""ird"`: `s."We""ird"`,
		"a.b": "a.b", `"a.b"`: `"a.b"`, "s.c": "s.c"} {
		if of, err := odd.Choose(name); err != nil || of.Name != want {
			t.Errorf("%s: %v, %v, want %s", name, of, err, want)
		}
	}
	if _, err := odd.Choose("c"); err == nil || !strings.Contains(err.Error(), `s.c, "s.c".c`) {
		t.Error(err)
	}
	if _, err := new(Dump).Choose(""); err == nil || !strings.Contains(err.Error(), "holds no rows (tables: none)") {
		t.Error(err)
	}
	for i := range 30 {
		d.Add(fmt.Sprint("more", i)).Rows = 1
	}
	if text := d.Describe(d.Find("a.t")); !strings.Contains(text, "skipped: 33 other tables with 33 rows (b.t 1, b.u 2, more0 1") || !strings.Contains(text, "12 more)") {
		t.Error(text)
	}
}
