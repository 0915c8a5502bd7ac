package options

import (
	"slices"
	"strings"
	"testing"
)

func TestNamesWithCommasAndEqualSignsAreQuoted(t *testing.T) {
	for text, want := range map[string]string{
		"a=b": "a b", `"a=b"=c`: "a=b c", `"say ""x"""=c`: `say "x" c`, `a=b=c`: "a b=c", "a": "refused", `"a"`: "refused", `"=b`: "refused",
	} {
		from, to, ok := CutRename(text)
		if got := from + " " + to; ok != (want != "refused") || ok && got != want {
			t.Errorf("%s: %q, %v, want %s", text, got, ok, want)
		}
	}
	if names, err := List(`a,"b,c",`); err != nil || !slices.Equal(names, []string{"a", "b,c", ""}) {
		t.Errorf("%q, %v", names, err)
	}
	if names, err := List(""); err != nil || names == nil || len(names) != 0 {
		t.Errorf("an empty list means no column at all, rather than all: %q, %v", names, err)
	}
	for _, bad := range []string{`"a`, "a\nb", `a"b`} {
		if names, err := List(bad); err == nil {
			t.Errorf("%q is the list %q", bad, names)
		}
	}
}

func TestTypesInOneFlagAreSplitAtCommas(t *testing.T) {
	for text, want := range map[string]string{
		"a=double,b=integer": "a=double b=integer", "a=timestamp(,Asia/Shanghai,ns),b=binary(hex),c=string": "a=timestamp(,Asia/Shanghai,ns) b=binary(hex) c=string",
		"a,b=integer": "a,b=integer", "a=b=double": "a=b=double", "a=double,b": "a=double,b", "a=doubel,b=integer": "a=doubel,b=integer",
	} {
		if got := strings.Join(CutTypes(text), " "); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}
