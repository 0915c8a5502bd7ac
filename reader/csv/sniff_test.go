package csv

import (
	"strings"
	"testing"
)

func TestADialectIsFoundOrRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		text      string
		delimiter string
		quote     byte
		escape    byte
		refused   string // in the error
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
		if got := DetectEOL([]byte(text), '"'); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	if got := DetectEOL([]byte("a\r'b\nc'\r"), '\''); got != '\r' {
		t.Errorf("a line feed in single quotes: %q", got)
	}
	if got := DetectEOL([]byte("a\r5\"\nc\n"), 0); got != '\n' {
		t.Errorf("a quote that is text: %q", got)
	}
}
