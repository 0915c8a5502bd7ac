package rundir

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tsimport/internal/table"
)

func TestReasonsAreCountedByCodeWithTheFirstOfEach(t *testing.T) {
	dir := t.TempDir()
	f, err := Create(dir, []Header{{}})
	must(t, err)
	for i, code := range []string{"WrongType", "OutOfRange", "OutOfRange", "WrongType", "OutOfRange"} {
		r := table.Reject{Location: table.Location{Source: "a.csv", Record: int64(i + 1), Line: int64(i + 2)}, Raw: []byte("x\n"),
			Reason: table.Reason{Column: "n", Code: code, Message: "not so", Value: "x"}}
		must(t, f.Reject(0, r))
	}
	must(t, f.Close())
	got, err := CountReasons(dir)
	must(t, err)
	want := []ReasonCount{
		{"OutOfRange", 3, Reason{File: "a.csv", Record: 2, Line: 3, Column: "n", Code: "OutOfRange", Message: "not so", Value: "x"}},
		{"WrongType", 2, Reason{File: "a.csv", Record: 1, Line: 2, Column: "n", Code: "WrongType", Message: "not so", Value: "x"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if none, err := CountReasons(t.TempDir()); none != nil || err != nil {
		t.Errorf("a run without rejects: %v, %v", none, err)
	}
}
