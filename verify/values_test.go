package verify

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tsimport/internal/table"
	"tsimport/internal/tablestore/plainbuffer"
)

func TestValuesShowTheirTypes(t *testing.T) {
	for _, c := range []struct {
		value any
		want  string
	}{
		{int64(5), "5"}, {5.0, "5.0"}, {0.1, "0.1"}, {1e300, "1e+300"}, {true, "true"}, {"5", `"5"`}, {"", `""`}, {"a\nb", `"a\nb"`}, {[]byte{}, "0x"}, {[]byte{0, 255}, "0x00ff"},
		{strings.Repeat("列", 30), `"` + strings.Repeat("列", 20) + `"… (90 bytes)`}, {strings.Repeat("a", 59) + "列", `"` + strings.Repeat("a", 59) + `"… (62 bytes)`},
		{make([]byte, 2<<20), "0x" + strings.Repeat("00", 30) + "… (2097152 bytes)"},
	} {
		if got := showValue(c.value); got != c.want {
			t.Errorf("%v: %s, want %s", c.value, got, c.want)
		}
	}
}

func TestKeysShowTheirTypes(t *testing.T) {
	key := Key{{"i", table.Value{Type: table.Integer, Int: -5}}, {"s", table.Value{Type: table.String, Bytes: []byte("a\"")}}, {"b", table.Value{Type: table.Binary, Bytes: []byte{0, 255}}}}
	if got, want := key.String(), `i=-5 s="a\"" b=0x00ff`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestBothSidesOfADifferenceAreShown(t *testing.T) {
	given := shown{}
	for _, c := range []plainbuffer.View{
		{Name: []byte("n"), Value: table.Value{Type: table.Integer, Int: 5}, Timestamp: -1},
		{Name: []byte("v"), Value: table.Value{Type: table.String, Bytes: []byte("new")}, Timestamp: 20},
		{Name: []byte("v"), Value: table.Value{Type: table.Boolean, Int: 1}, Timestamp: 10},
		{Name: []byte("gone"), Timestamp: -1},
	} {
		given.addView(c)
	}
	e := &Example{Columns: []string{"gone", "n", "other", "v"}, stored: shown{"n": {"6 at 7"}, "other": {"1 at 7"}, "gone": {"2 at 7"}}}
	e.values(given, true)
	want := []Values{
		{"gone", []string{}, []string{"2 at 7"}}, {"n", []string{"5"}, []string{"6 at 7"}}, {"other", []string{}, []string{"1 at 7"}}, {"v", []string{`"new" at 20`, "true at 10"}, []string{}},
	}
	if diff := cmp.Diff(want, e.Values); diff != "" {
		t.Error(diff)
	}
	e.Values = nil
	e.values(given, false) // of an update, another record may have written the other column
	if diff := cmp.Diff(append(want[:2:2], want[3]), e.Values); diff != "" {
		t.Error(diff)
	}
	for i := range 50 {
		e.Columns = append(e.Columns, fmt.Sprint(i))
	}
	e.Values = nil
	if e.values(given, true); len(e.Values) != shownColumns {
		t.Errorf("%d columns are shown", len(e.Values))
	}
}
