package commands

import (
	"io"
	"slices"
	"strings"
	"testing"

	"tsimport/job"
)

func TestAFlagThatIsGoneNamesWhatTakesItsPlace(t *testing.T) {
	keys := jobVocabulary()
	for _, g := range goneFlags {
		args := []string{"tsimport", "load", "--" + g.name, "7"}
		if err := newApp(io.Discard, newDisplay(io.Discard), nil, nil).Run(args); err == nil || !strings.Contains(err.Error(), "--"+g.name+" is gone: "+g.instead) {
			t.Errorf("%v: %v", args, err)
		}
		if has := slices.ContainsFunc(keys.Commands[job.Load], func(k job.Key) bool { return k.Name == g.name }); has ||
			!strings.Contains(keys.Refused[g.name], g.instead) {
			t.Errorf("the key %s of a job is answered %q", g.name, keys.Refused[g.name])
		}
	}
}

func TestARunIsResumedWithoutFlagsThatAreGone(t *testing.T) {
	args := []string{"load", "--raise-write", "50", "--table", "t", "-raise-write=7", "--", "--raise-write", "x.csv"}
	want := []string{"load", "--table", "t", "--", "--raise-write", "x.csv"}
	if got := withoutGone(args); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
