//go:build e2e

package e2e

import (
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

func TestARunningLoadIsLookedAtOverHTTP(t *testing.T) {
	t.Parallel()
	w := watch(t, "--max-rows-per-second", "500", "--memory", "64MiB")
	if code, body := w.get("status"); code != http.StatusServiceUnavailable || !strings.Contains(body, `{
  "error": "the load has not started writing yet"
}`) {
		t.Errorf("before there is input: answer %d %s", code, body)
	}
	if code, body := w.get("metrics"); code != http.StatusOK || !strings.Contains(body, "\ntsimport_writing 0\n") {
		t.Errorf("before there is input: answer %d %s", code, body)
	}
	w.feed()
	s := w.running()
	if s.Table != "t" || s.Memory.Limit != 64<<20 || s.Read < s.Written || len(s.Lanes) != 1 || s.Lanes[0].Final != s.Written || s.Queued == 0 {
		t.Errorf("%+v", s)
	}
	code, body := w.get("metrics")
	m := regexp.MustCompile(`(?m)^tsimport_rows_written_total (\d+)$`).FindStringSubmatch(body)
	if code != http.StatusOK || m == nil || !strings.Contains(body, `tsimport_lane_rows_queued{from="",partition="0"}`) || !strings.Contains(body, "process_resident_memory_bytes") {
		t.Errorf("metrics: answer %d %s", code, body)
	}
	if code, body := w.get(""); code != http.StatusOK || !strings.Contains(body, "/metrics") {
		t.Errorf("front page: answer %d %s", code, body)
	}
	w.signal(syscall.SIGINT)
	w.end(130)
	if sum := readSummary(t, w.dir+"/run"); sum.Written < s.Written {
		t.Errorf("%d rows were written at the end, %d before", sum.Written, s.Written)
	}
	if resp, err := http.Get(w.status); err == nil {
		resp.Body.Close()
		t.Error("the status is served after the load has ended")
	}
}

func TestVerboseNamesTheBusiestLanes(t *testing.T) {
	t.Parallel()
	w := watch(t, "--max-rows-per-second", "500", "-v")
	w.feed()
	w.says(`^tsimport: [1-9][\d,]* rows, .* read`, 1)
	w.says(`^tsimport: busiest of 1 partition: 0 \(\w+.*queued, \d+ in flight\)$`, 1)
	w.signal(syscall.SIGINT)
	w.end(130)
}

func TestAnAddressInUseEndsALoadBeforeItBegins(t *testing.T) {
	w := watch(t)
	address := strings.TrimSuffix(strings.TrimPrefix(w.status, "http://"), "/")
	dir := t.TempDir()
	_, stderr, code := runBinary(t, "load", "../examples/student-cards.csv", "--table", "t", "--pk", "CardID", "--store", dir+"/store", "--run-dir", dir+"/run", "--status", address)
	if code != 2 || !strings.Contains(stderr, "tsimport: --status "+address+": ") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if _, _, code := runBinary(t, "table", "list", "--store", dir+"/store"); code != 2 {
		t.Error("the store was made")
	}
	w.signal(syscall.SIGINT)
	w.end(130)
}
