package commands

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
)

// Rows of a job file that names its target do not go to the one that the shell happens to name.
func TestAJobFileKeepsItsTarget(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "in.csv", "id,n\na,1\n")
	for name, value := range map[string]string{
		endpointEnv: "http://127.0.0.1:1", instanceEnv: "other", "TSIMPORT_ENDPOINT": "http://127.0.0.1:1", "TSIMPORT_INSTANCE": "other",
		"TABLESTORE_ACCESS_KEY_ID": "a", "TABLESTORE_ACCESS_KEY_SECRET": "b",
	} {
		t.Setenv(name, value)
	}
	for i, tt := range []struct{ target, flags, says string }{
		{"target: {store: ./mine}", "", "target: embedded store ./mine"},
		{"target: {store: ./mine}", "--store other", "target: embedded store other"},
		{"target: {endpoint: 'http://127.0.0.1:2', instance: own}", "", "target: instance own at http://127.0.0.1:2"},
		{"", "", "target: instance other at http://127.0.0.1:1"},
	} {
		put(t, "job.yaml", "version: 1\n"+tt.target+"\nloads:\n  t: {from: in.csv, pk: id, create: true, retry-for: 1ms}\n")
		var said bytes.Buffer
		Run(append([]string{"tsimport", "run", "job.yaml", "--fresh"}, strings.Fields(tt.flags)...), io.Discard, &said)
		if !strings.Contains(said.String(), tt.says+"\n") {
			t.Errorf("%d: %q is missing in\n%s", i, tt.says, &said)
		}
	}
	for _, store := range []string{"mine", "other"} {
		if _, err := os.Stat(store); err != nil {
			t.Error(err)
		}
	}
}
