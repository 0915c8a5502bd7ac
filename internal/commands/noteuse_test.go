package commands

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"tsimport/bench/cost"
	"tsimport/pipeline"
)

func TestAMeasuredCommandSaysItsOwnPeak(t *testing.T) {
	file := filepath.Join(t.TempDir(), "used.json")
	t.Setenv(cost.UsedEnv, file)
	noteUse()
	var used struct {
		Allocations  int64 `json:"allocations"`
		PeakRSSBytes int64 `json:"peak_rss_bytes"`
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &used)
	}
	if _, peak := pipeline.Resources(); err != nil || used.Allocations == 0 || peak > 0 && used.PeakRSSBytes == 0 || used.PeakRSSBytes > peak {
		t.Errorf("%s: %v; the peak is %d", text, err, peak)
	}
}
