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

func TestAnAddressInUseEndsALoadBeforeItBegins(t *testing.T) {
	w := watch(t)
	address := strings.TrimSuffix(strings.TrimPrefix(w.status, "http://"), "/")
	p := newPlace(t)
	p.write("in.csv", "id\n1\n")
	if said := p.ends(2, []string{"load", "in.csv", "--table", "t", "--pk", "id", "--store", "store", "--status", address}, "tsimport: --status "+address+": "); strings.Count(said, "\n") != 1 {
		t.Error(said)
	}
	p.ends(2, []string{"table", "list", "--store", "store"}) // it was not made
	w.signal(syscall.SIGINT)
	w.end(130)
}
