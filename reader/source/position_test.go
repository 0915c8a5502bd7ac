package source

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// TestLogPositionsAreOrdered compares all pairs in lists of positions, which are in ascending order.
func TestLogPositionsAreOrdered(t *testing.T) {
	begun := time.Unix(1e9, 0)
	for _, log := range [][]*Resume{
		{ResumeAt(begun), ResumeAt(begun.Add(time.Millisecond)), ResumeAt(begun.Add(time.Hour))},
		{{File: "binlog.9", Position: 5}, {File: "binlog.9", Position: 40}, {File: "binlog.10", Position: 4},
			{File: "binlog.11", Position: 4}},
		{{LSN: "0/9"}, {LSN: "0/FFFFFFFF"}, {LSN: "1/0"}, {LSN: "A/1"}, {LSN: "10/0"}},
	} {
		for i, a := range log {
			for j, b := range log {
				conformance.Equal(t, a.Before(b), i < j, "%v before %v", a, b)
			}
		}
	}
}

func TestPositionsAreShown(t *testing.T) {
	conformance.Golden(t, "positions.golden", func(input string) string {
		var p Position
		conformance.Must(t, json.Unmarshal([]byte(input), &p))
		return fmt.Sprintf("%q", p.Follow())
	})
	at := time.Date(2026, 1, 2, 3, 4, 5, 6_007_008, time.FixedZone("", 3600))
	conformance.Equal(t, ResumeAt(at).String(), "2026-01-02T02:04:05.006Z", "a time")
}

func TestMemoryIsHeldUpToItsLimit(t *testing.T) {
	m := Memory{What: "pages", Also: ", or less"}
	conformance.Must(t, m.Hold(1<<40))
	m.LimitMemory(3 << 20)
	conformance.Must(t, errors.Join(m.Hold(-1<<40), m.Hold(1<<20), m.Hold(2<<20), m.Hold(0)))
	err := m.Hold(1 << 20)
	conformance.Is(t, err, ErrMemory, "a byte more")
	conformance.Equal(t, err.Error(), "its pages take 5 MiB or more, memory allows 3 MiB; give more with --memory, "+
		"or less", "the error")
	conformance.True(t, m.Held == 3<<20 && !errors.Is(err, io.EOF), "%d bytes are held", m.Held)
}

// failing is a source of three pieces of one split. The call with the given name and number fails.
type failing struct {
	Source
	call  string
	calls []string
}

var errBroken = errors.New("broken")

func (f *failing) fails(what string) error {
	f.calls = append(f.calls, what)
	if n := len(slices.DeleteFunc(slices.Clone(f.calls), func(c string) bool { return c != what })); f.call ==
		fmt.Sprint(what, n) {
		return errBroken
	}
	return nil
}

func (f *failing) Prepare() error { return f.fails("prepare") }
func (f *failing) Bytes() int64   { return 0 }

func (f *failing) Next() (Piece, error) {
	err := f.fails("next")
	if err == nil && strings.Count(fmt.Sprint(f.calls), "next") > 3 {
		err = fmt.Errorf("the end: %w", io.EOF)
	}
	return f, err
}

func (f *failing) Add(Piece) ([]Split, error) { return []Split{{Number: len(f.calls)}}, f.fails("add") }
func (f *failing) Finish() ([]Split, error)   { return []Split{{Number: 100}}, f.fails("finish") }
func (f *failing) Whole() []Split             { return []Split{{Number: 200}} }

func TestSplitsPrecedeAnError(t *testing.T) {
	for call, want := range map[string]string{
		"": "[2 5 8 100]", "next1": "[200 broken]", "prepare1": "[2 broken]", "add2": "[2 5 broken]",
		"prepare3": "[2 5 8 broken]", "next4": "[2 5 8 200 broken]", "finish1": "[2 5 8 100 broken]",
	} {
		for most := range 5 { // how many items are taken
			var got []any
			for split, err := range Splits(&failing{call: call}) {
				if got = append(got, split.Number); err != nil {
					conformance.Is(t, err, errBroken, "%s", call)
					got[len(got)-1] = err
				}
				if len(got) == most {
					break
				}
			}
			all := strings.Fields(strings.Trim(want, "[]"))
			conformance.Equal(t, fmt.Sprint(got), fmt.Sprint(all[:min(len(all), cmp.Or(most, 5))]), "%s, %d items", call, most)
		}
	}
}

func TestTableRowsAreDescribed(t *testing.T) {
	r := TableRows{Added: []string{"a"}}
	about := r.Keyed([]table.KeyColumn{{Name: "s", Type: table.String}, {Name: "i", Type: table.Integer},
		{Name: "b", Type: table.Binary}}, About{Name: "t"})
	about.AddColumns([]string{"c"})
	about.AddColumns = nil
	want := About{Name: "t", Columns: []string{"s", "i", "b", "a"}, Wide: true, Rejects: Rejects{Kind: ".ndjson"},
		Unique: []KeyColumn{{"s", record.String}, {"i", record.Integer}, {"b", record.Binary}}}
	conformance.True(t, reflect.DeepEqual(about, want) && fmt.Sprint(r.Added) == "[a c]", "%+v, %v", about, r.Added)
	conformance.True(t, (&Lasting{errBroken}).Exit() == 2 && errors.Is(&Lasting{errBroken}, errBroken) &&
		(&Lasting{errBroken}).Error() == "broken", "an error that lasts")
}
