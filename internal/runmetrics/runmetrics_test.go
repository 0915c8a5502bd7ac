package runmetrics

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/internal/conformance"
)

var monday = time.Date(2026, 11, 23, 4, 0, 0, 500e6, time.UTC)

func load(at time.Time, code int) Run {
	return Run{Command: "load", Table: "orders", Ended: at, Took: 90 * time.Second, ExitCode: code,
		Rows: []Rows{{"read", 12}, {"written", 10}, {"rejected", 2}}}
}

func TestMetricsFileOfRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tsimport.prom")
	conformance.Must(t, WriteFile(t.Context(), path, []Run{load(monday, 0)}))
	want := `# HELP tsimport_last_run_bad_inputs Files set aside (docs/how-to/nightly-files.md).
# TYPE tsimport_last_run_bad_inputs gauge
tsimport_last_run_bad_inputs{command="load",load="",table="orders"} 0
# HELP tsimport_last_run_duration_seconds How long the last run took.
# TYPE tsimport_last_run_duration_seconds gauge
tsimport_last_run_duration_seconds{command="load",load="",table="orders"} 90
# HELP tsimport_last_run_exit_code Exit code of the last run (docs/errors.md).
# TYPE tsimport_last_run_exit_code gauge
tsimport_last_run_exit_code{command="load",load="",table="orders"} 0
# HELP tsimport_last_run_rows Rows of the last run, by how they ended.
# TYPE tsimport_last_run_rows gauge
tsimport_last_run_rows{command="load",load="",outcome="read",table="orders"} 12
tsimport_last_run_rows{command="load",load="",outcome="rejected",table="orders"} 2
tsimport_last_run_rows{command="load",load="",outcome="written",table="orders"} 10
# HELP tsimport_last_run_success_timestamp_seconds When the last run with exit code 0 ended, in seconds since 1970.
# TYPE tsimport_last_run_success_timestamp_seconds gauge
tsimport_last_run_success_timestamp_seconds{command="load",load="",table="orders"} 1.7954064005e+09
# HELP tsimport_last_run_timestamp_seconds When the last run ended, in seconds since 1970.
# TYPE tsimport_last_run_timestamp_seconds gauge
tsimport_last_run_timestamp_seconds{command="load",load="",table="orders"} 1.7954064005e+09
`
	conformance.Equal(t, cmp.Diff(want, string(conformance.Read(t, "", path))), "", "(-want +got)")
}

func TestFailedRunKeepsLastSuccess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tsimport.prom")
	other := load(monday, 0)
	other.Load = "a \"quoted\"\nname"
	const of, first = `{command="load",load="",table="orders"} `, "1.7954064005e+09"
	for _, step := range []struct {
		runs       []Run
		has, lacks string
	}{
		{[]Run{load(monday, 1)}, "exit_code" + of + "1", "success_timestamp"},
		{[]Run{load(monday, 0), other}, "success_timestamp_seconds" + of + first, "exit_code" + of + "1"},
		{[]Run{load(monday.Add(24*time.Hour), 3), other}, "success_timestamp_seconds" + of + first, "exit_code" + of + "0"},
		{[]Run{load(monday.Add(25*time.Hour), 1)},
			`success_timestamp_seconds{command="load",load="a \"quoted\"\nname",table="orders"} ` + first,
			`exit_code{command="load",load="a`},
		{[]Run{load(monday.Add(48*time.Hour), 0)}, "success_timestamp_seconds" + of + "1.7955792005e+09", first},
	} {
		conformance.Must(t, WriteFile(t.Context(), path, step.runs))
		text := string(conformance.Read(t, "", path))
		conformance.True(t, strings.Contains(text, step.has) && !strings.Contains(text, step.lacks), "%+v: %s", step, text)
	}
}

func TestForeignFileIsLeftAlone(t *testing.T) {
	conformance.Equal(t, WriteFile(t.Context(), os.DevNull, []Run{load(monday, 0)}), nil, "WriteFile")
	path := filepath.Join(t.TempDir(), "orders.csv")
	for text, want := range map[string]string{
		"id,item\n1,tea\n": "not a file of metrics", strings.Repeat("# HELP of metrics\n", 1<<16): "larger than 1 MiB",
	} {
		conformance.Must(t, os.WriteFile(path, []byte(text), 0o644))
		err := WriteFile(t.Context(), path, []Run{load(monday, 0)})
		conformance.Refused(t, err, want, "a file that is not a metrics file")
		conformance.Equal(t, string(conformance.Read(t, "", path)), text, "%s: the file", want)
	}
}
