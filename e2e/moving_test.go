//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// TestATableIsMovedWhileItSplitsAndIsWritten moves a table of which some rows change, come and go: each of these is whole, and all others are
// there as they are.
func TestATableIsMovedWhileItSplitsAndIsWritten(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"copy", "archive"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := pairUp(t, startServe(t, "--sync", "none", "--splits", "100ms:0ms:24", "--moves", "600:0ms"), startServe(t, "--sync", "none"))
			p.fill("t", 0, 2000)
			want := dump(t, p.a, "t")
			// The pages are refused and cut, so that the scan takes a while and resumes in the middle of its ranges.
			troubled(t, p.a, 1, 0.3, "GetRange", "refuse:OTSServerBusy", "refuse:OTSPartitionUnavailable", "drop-after", "truncate-body")
			args := []string{"copy", "t", p.inB("t"), "--create"}
			if name == "archive" {
				args = []string{"export", "--table", "t", "-o", "kept/"}
			}
			tb, r := p.a.table("t"), p.start(args...)
			for n := 0; !r.over(); n++ {
				var changes []tablestore.RowChange
				for i := range 20 {
					key := tb.key(fmt.Sprint("key ", (n*7+i*50)%1000), -1-n%40)
					if changes = append(changes, tb.put(key, c("a", n), c("b", n))); i%4 == 0 {
						changes[i] = tb.delete(key)
					}
				}
				tb.load(t, changes...)
			}
			if r.wait() != 0 {
				t.Fatalf("%v\n%s", r.ProcessState, &r.said)
			}
			if name == "archive" {
				p.run(0, "load", "kept", "--table", "t", "--create", "--endpoint", p.b.URL)
			}
			got, written := dump(t, p.b, "t"), 0
			if s := p.summary(); s.Read != s.Written || s.Superseded != 0 || s.Read != int64(len(got)) {
				t.Errorf("rows came more than once: %+v", s)
			}
			for key, cells := range got {
				if _, there := want[key]; there || !strings.Contains(key, " -") {
					continue
				}
				if written++; len(cells) != 2 || cells[0].Value != cells[1].Value {
					t.Errorf("row %s is %v", key, cells)
				}
				delete(got, key)
			}
			if diff := differs(want, got); diff != "" || written == 0 {
				t.Errorf("%d rows that were written meanwhile; of the others: %.2000s", written, diff)
			}
		})
	}
}
