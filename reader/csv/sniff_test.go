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
		refused   bool
	}{
		"commas":                      {"a,b\n1,2\n3,4\n", ",", '"', 0, false},
		"semicolons":                  {"a;b\n1;2\n", ";", '"', 0, false},
		"tabs":                        {"a\tb\n1\t2,5\n", "\t", '"', 0, false},
		"bars with commas in text":    {"a|b\nx, y|2\nz|3\n", "|", '"', 0, false},
		"control A":                   {"a\x01b\n1\x012\n", "\x01", '"', 0, false},
		"quoted delimiters":           {"a;b\n\"1;2\";3\n", ";", '"', 0, false},
		"single quotes":               {"a,b\n'1,2',3\n'4',5\n", ",", '\'', 0, false},
		"backslash escapes":           {"a,b\n\"x\\\",y\",3\n\"z\",4\n", ",", '"', '\\', false},
		"one column":                  {"a\nb\nc\n", ",", '"', 0, false},
		"empty":                       {"", ",", '"', 0, false},
		"a cut last record":           {"a,b\n1,2\n3", ",", '"', 0, false},
		"a cut quoted record":         {"id;a;b\r\n1;\"x;\n1\";y,1\r\n2;\"x;\n2\";y,2\r\n3;\"x;\n", ";", '"', 0, false},
		"decimal commas or semicolon": {"a,b;c,d\n1,2;3,4\n", "", 0, 0, true},
		"quotes that may be text":     {"a,b\n'x',1\n'y',2\n", "", 0, 0, true},
		"a column in quotes":          {"id,v\n1,\"a\"\n2,\"b\"\n", ",", '"', 0, false},
		"names in quotes":             {"\"id\";\"v\"\n1;2,5\n2;3,5\n", ";", '"', 0, false},
		"apostrophes":                 {"id,v\n1,it's\n2,'tis o'clock\n", ",", '"', 0, false},
		"a fault beside one quote":    {"id,v\n1,\"a\" \n2,\"b\"\n", "", 0, 0, true},
		"a fault beside many quotes":  {"id,v\n1,\"a\" \n" + strings.Repeat("2,\"b\"\n", 10), ",", '"', 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Sniff([]byte(tt.text), true)
			if (err != nil) != tt.refused {
				t.Fatalf("%v, %v", d, err)
			}
			if err != nil {
				if !strings.Contains(err.Error(), "2 ways") {
					t.Errorf("the error does not name the readings: %v", err)
				}
				return
			}
			if d.Delimiter != tt.delimiter || d.Quote != tt.quote || d.Escape != tt.escape {
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
