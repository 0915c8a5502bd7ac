package scan

import (
	"fmt"
	"strings"
	"testing"

	"tsimport/internal/table"
)

func TestRangesOfKeys(t *testing.T) {
	key := []table.KeyColumn{{Name: "s", Type: table.String}, {Name: "n", Type: table.Integer}, {Name: "b", Type: table.Binary}}
	show := func(values []table.Value) string {
		text := ""
		for _, v := range values {
			if v.Type == table.Integer {
				text += fmt.Sprintf("%d;", v.Int)
			} else {
				text += fmt.Sprintf("%q;", v.Bytes)
			}
		}
		return text
	}
	for _, tt := range []struct{ text, from, to string }{
		{"", "", ""},
		{"a..b", `"a";`, `"b";`},
		{"a..", `"a";`, ""},
		{"..b,7", "", `"b";7;`},
		{"a", `"a";`, `"a\x00";`},
		{"a,7", `"a";7;`, `"a";8;`},
		{"a,9223372036854775807", `"a";9223372036854775807;`, `"a\x00";`},
		{"a..b..c", `"a";`, `"b..c";`},
		{`a"b,7`, `"a\"b";7;`, `"a\"b";8;`},
		{`"\ud83d\ude00",7..`, `"😀";7;`, ""},
		{`"\ufffd"..`, "\"\ufffd\";", ""},
		{`""..b`, `"";`, `"b";`},
		{`"\ud800"..`, "error", ""}, {"\"\xff\"..", "error", ""}, {"\xff..", "error", ""}, {`"a`, "error", ""}, {`"a"b`, "error", ""}, {`"a""b"`, "error", ""},
		{"a,7,0x00ff", `"a";7;"\x00\xff";`, `"a";7;"\x00\xff\x00";`},
		{`"a..b,c","..`, "error", ""},
		{`"a..b,c"`, `"a..b,c";`, `"a..b,c\x00";`},
		{`"a\"b".."c"`, `"a\"b";`, `"c";`},
		{"..", "error", ""}, {"b..a", "error", ""}, {"a..a", "error", ""}, {"a,x", "error", ""}, {"a,1,ff", "error", ""}, {"a,1,0x1", "error", ""}, {"a,1,0x00,4", "error", ""},
	} {
		from, to, err := ParseRange(tt.text, key)
		if tt.from == "error" {
			if err == nil {
				t.Errorf("%s: taken", tt.text)
			}
			continue
		}
		if err != nil || show(from) != tt.from || show(to) != tt.to {
			t.Errorf("%s: %s to %s, %v", tt.text, show(from), show(to), err)
		}
	}
	integer := []table.KeyColumn{{Name: "n", Type: table.Integer}}
	if from, to, err := ParseRange("9223372036854775807", integer); err != nil || len(from) != 1 || to != nil {
		t.Errorf("the last integer: %v to %v, %v", from, to, err)
	}
}

func TestTheLongestKeyValue(t *testing.T) {
	key := []table.KeyColumn{{Name: "s", Type: table.String}}
	longest := strings.Repeat("x", table.MaxKeyBytes)
	if values, err := ParseKey(longest, key); err != nil || len(values) != 1 {
		t.Errorf("%v, %v", values, err)
	}
	if _, _, err := ParseRange("a.."+longest, key); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{longest + "x..": "at most 1024", longest: "no next one", "..": "no bound"} {
		if _, _, err := ParseRange(text, key); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.10s: %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{"", "a,b", `"a" `} {
		if _, err := ParseKey(text, key); err == nil {
			t.Errorf("%q: taken", text)
		}
	}
}
