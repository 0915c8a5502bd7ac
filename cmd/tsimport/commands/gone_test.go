package commands

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"testing"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline/options"
)

func TestAFlagThatIsGoneNamesWhatTakesItsPlace(t *testing.T) {
	keys := jobVocabulary()
	for _, g := range goneFlags {
		if g.value != "" {
			continue // the flag is there
		}
		args := []string{"tsimport", cmp.Or(g.of, "load"), "--" + g.name, "7"}
		if g.noValue {
			args = args[:3]
		}
		if err := newApp(io.Discard, &invocation{show: newDisplay(io.Discard)}).Run(args); err == nil || !strings.Contains(err.Error(), "--"+g.name+" is gone: "+g.instead) {
			t.Errorf("%v: %v", args, err)
		}
		if g.of != "" {
			continue
		}
		if has := slices.ContainsFunc(keys.Commands[job.Load], func(k *options.Option) bool { return k.Name == g.name }); has ||
			!strings.Contains(keys.Refused[g.name], g.instead) {
			t.Errorf("the key %s of a job is answered %q", g.name, keys.Refused[g.name])
		}
	}
}

func TestACommandThatIsGoneNamesWhatTakesItsPlace(t *testing.T) {
	for name, instead := range goneCommands {
		var stderr strings.Builder
		args := append([]string{"tsimport"}, strings.Fields(name+" a --rows 5 --what scan")...)
		if code := Run(args, io.Discard, &stderr); code != exitcode.Usage || stderr.String() != "tsimport: tsimport "+name+" is gone: "+instead+"\n" {
			t.Errorf("%q: exit code %d, %q", args, code, &stderr)
		}
	}
}

func TestARunIsResumedWithoutFlagsThatAreGone(t *testing.T) {
	args := []string{"load", "--raise-write", "50", "--verbose", "--table", "t", "-raise-write=7", "--verbose=false", "--compress", "auto", "--compress=on", "--", "--raise-write", "x.csv"}
	want := []string{"load", "--table", "t", "--compress=on", "--", "--raise-write", "x.csv"}
	if got, err := withoutGone(args); err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

func TestAFlagThatIsGoneAndMadeOtherRowsIsNotPassedOver(t *testing.T) {
	for _, args := range [][]string{{"load", "--ignore-ts", "x.jsonl"}, {"load", "x.csv", "--header-line=3"}, {"copy", "a", "b", "--returned-keys", "k.csv"}} {
		if kept, err := withoutGone(args); err == nil || !strings.Contains(err.Error(), "with the version that began it") {
			t.Errorf("%q: %q, %v", args, kept, err)
		}
	}
	t.Setenv("TSIMPORT_IGNORE_TS", "true")
	if code := Run([]string{"tsimport", "load", "x.jsonl", "--table", "t"}, io.Discard, io.Discard); code != exitcode.Usage {
		t.Errorf("exit code %d where the environment gives one", code)
	}
}

// A job that an earlier version has begun keeps its keys as that version knew them.
func TestALoadOfAJobIsContinuedWithoutKeysThatAreGone(t *testing.T) {
	o := &jobRunner{c: new(invocation).again(t.Context(), &options.Command{Name: "run"}, io.Discard, nil, newDisplay(io.Discard))}
	for key, want := range map[string]string{"raise-write=50": "", "compress=auto": "", "compress=on": "", "header=true": "", "max-deviation=5": "does not have: continue it", "never=1": "does not have for load"} {
		name, value, _ := strings.Cut(key, "=")
		l := &job.Single{Name: "l", Command: job.Load, From: []string{"a.csv"}, Settings: []job.Setting{{Key: name, Values: []string{value}}}}
		of, err := o.requested(l)
		if !says(err, want) || err == nil && (of.Table != "l" || of.Compress != map[string]string{"compress=on": "on"}[key]) {
			t.Errorf("%s: %+v, %v", key, of, err)
		}
	}
}
