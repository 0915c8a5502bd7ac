package rundir

import (
	"os"
	"path/filepath"
	"testing"
)

func TestARunFolderIsKnownByItsFiles(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		want  bool
	}{
		"finished":               {map[string]string{SummaryFile: `{"state":"finished","run_dir":"r"}`}, true},
		"killed":                 {map[string]string{SummaryFile: `{"state":"running"}`, LockFile: ""}, true},
		"earlier attempt":        {map[string]string{SummaryFile: `{"state":"running"}`, "run.json": "{}"}, true},
		"without a summary":      {map[string]string{"run.json": "{}", ReasonsFile: ""}, true},
		"a summary of others":    {map[string]string{SummaryFile: `{"state":"NY"}`, "rows.csv": ""}, false},
		"not even an object":     {map[string]string{SummaryFile: `[1]`, LockFile: ""}, false},
		"a job of others":        {map[string]string{"run.json": "{}", "rows.csv": ""}, false},
		"rejects without a run":  {map[string]string{"rejects.csv": "a\n"}, false},
		"an empty folder":        {nil, false},
		"a summary with no file": {map[string]string{SummaryFile: `{"run_dir":"r"}`}, false},
	} {
		dir := t.TempDir()
		for file, text := range tt.files {
			must(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
		}
		if got := IsRun(dir); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	t.Chdir(t.TempDir())
	must(t, os.Mkdir(Root, 0o700))
	if !IsRoot("./"+Root) || IsRoot(".") || IsRoot("none") {
		t.Error("the folder of runs is not told from others")
	}
}
