package progress

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
)

type state struct {
	Rows  int64    `json:"rows,omitempty"`
	Names []string `json:"names,omitempty"`
}

func TestFileRoundTripsOrIsRefusedWithAdvice(t *testing.T) {
	name := filepath.Join(t.TempDir(), "state.json")
	read := func(version int) (s state, err error) {
		err = Read(name, version, &s, StartOver)
		return s, err
	}
	conformance.Is(t, conformance.ErrorOf(read(2)), fs.ErrNotExist, "without a file")
	conformance.Must(t, Write(name, 0o600, 2, state{7, []string{"é\n"}}))
	s, err := read(2)
	conformance.True(t, err == nil && s.Rows == 7 && s.Names[0] == "é\n", "%+v, %v", s, err)
	refused := func(version int, want string) {
		t.Helper()
		_, err := read(version)
		unfit := new(UnfitError)
		conformance.True(t, errors.As(err, &unfit) && unfit.Exit() == 2 && strings.Contains(err.Error(), want) &&
			strings.HasSuffix(err.Error(), ", or "+StartOver), "%v, want %q", err, want)
	}
	refused(1, name+" was written by a newer version of tsimport; use that version")
	refused(3, name+" was written by an earlier version of tsimport; use that version")
	for _, text := range []string{"", `{"version":2,"rows"`, `{"version":2,"rows":"many"}`, `{"version":"2"}`, "[]"} {
		conformance.Must(t, os.WriteFile(name, []byte(text), 0o600))
		refused(2, name+" is damaged")
	}
	conformance.Must(t, os.WriteFile(name, []byte(`{"rows":1}`), 0o600))
	refused(2, name+" was written by an earlier version of tsimport")
	conformance.Must(t, Write(name, 0o600, 2, state{}))
	s, err = read(2)
	conformance.True(t, err == nil && s.Rows == 0, "an empty state: %+v, %v", s, err)
	conformance.Refused(t, Write(filepath.Join(name, "below"), 0o600, 1, state{}), "below", "below a file")
	conformance.Refused(t, Write(name, 0o600, 1, 1), "not a JSON object", "a number")
	conformance.Refused(t, Write(name, 0o600, 1, func() {}), "unsupported", "what is not JSON")
}

func TestDifferentPartsHaveDifferentIdentifiers(t *testing.T) {
	one, again := Identify("a"), Identify("a")
	conformance.True(t, Identify("a", "b") != Identify("ab") && one == again, "different jobs have the same identity")
}

func TestCreationTimesAreComparedIfBothAreKnown(t *testing.T) {
	for _, c := range []struct {
		was, is int64
		differ  bool
	}{{1, 1, false}, {1, 2, true}, {0, 2, false}, {1, 0, false}} {
		changes, _ := Changes([]Fact{Made(c.was, c.is)}, []Fact{Made(c.is, c.was)})
		conformance.Equal(t, len(changes) > 0, c.differ, "%d, %d: %q", c.was, c.is, changes)
	}
}

func TestChangesAreNamed(t *testing.T) {
	before := []Fact{{"mode", "put", false}, {"size of a.csv", "10", true}}
	for _, c := range []struct {
		now    []Fact
		want   string
		inputs bool
	}{
		{[]Fact{{"mode", "put", false}, {"size of a.csv", "10", true}}, "", true},
		{[]Fact{{"mode", "put", false}, {"size of a.csv", "12", true}}, "size of a.csv was 10 and is 12 now", true},
		{[]Fact{{"mode", "update", false}, {"size of a.csv", "10", true}}, "mode was put and is update now", false},
		{[]Fact{{"mode", "put", false}}, "size of a.csv was 10 and is missing now", true},
		{[]Fact{before[0], before[1], {"order", "", false}}, "order was missing and is not given now", false},
		{[]Fact{before[0], before[1], {"--type", "map[]", false}}, "--type was missing and is not given now", false},
	} {
		changes, inputs := Changes(before, c.now)
		got := strings.Join(changes, "; ")
		conformance.True(t, got == c.want && inputs == c.inputs, "changes %q, inputs only %v; want %q", got, inputs, c.want)
	}
}

// TestLongValuesShowTheirDifference expects messages to leave out a long common beginning.
func TestLongValuesShowTheirDifference(t *testing.T) {
	long := strings.Repeat("键 string, ", 10)
	for _, c := range []struct{ was, is string }{
		{long + "created 17", long + "created 17, where b > 0"},
		{long + "from 1", long + "from 2"},
		{long, "x" + long},
	} {
		changes, _ := Changes([]Fact{{Name: "s", Value: c.was}}, []Fact{{Name: "s", Value: c.is}})
		was, is, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(changes[0], "s was "), " now"), " and is ")
		conformance.True(t, was != is && len([]rune(changes[0])) <= 150 &&
			strings.Contains(" "+long, " "+strings.Fields(strings.TrimPrefix(was, "…"))[0]), "%q", changes[0])
	}
}
