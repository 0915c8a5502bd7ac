//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// Rows may be sent by BulkImport, with the same result as by BatchWriteRow.
func TestALoadMaySendBulkImports(t *testing.T) {
	t.Parallel()
	s := startServe(t, "--memory", "--any-credentials", "--fault-rate", "0.2", "--fault-kinds", "drop-before,drop-after,refuse-rows,error-after,refuse:OTSServerBusy", "--random-seed", "4")
	p := newPlace(t, s.env()...)
	p.write("a.csv", fileOf("id,n,v", 3000, func(i int) string { return fmt.Sprintf("k%d,%d,%s", i%2500, i, strings.Repeat("x", i%50)) }))
	for _, tt := range []struct {
		code       int
		args, want string
	}{
		{0, "-t puts --request bulk --verify", "2,500 equal, 0 missing, 0 different, 0 surplus"},
		{0, "-t puts --request bulk --mode update --columns id,n --verify", ""},
		{0, "-t puts --request bulk --mode delete --columns id", ""},
		{2, "-t puts --request bulk --condition not-exist", "does not go with --condition"},
		{2, "-t puts --request bulk --when stored.n<new.n", "does not go with --when"},
		{2, "-t puts --request bulk --columns id,n --mode increment --mark-column m", "does not go with --mode increment"},
		{2, "-t numbered --request bulk --pk seq:auto --returned-keys keys.csv", "does not go with a column that the se"},
		{2, "-t puts --request single", "want batch or bulk"},
	} {
		p.ends(tt.code, append(strings.Fields("load a.csv --create --settle 100ms --pk id"), strings.Fields(tt.args)...), tt.want)
		if strings.Contains(tt.args, "delete") {
			if got := dump(t, s, "puts"); len(got) > 0 {
				t.Errorf("%d rows after the delete", len(got))
			}
		}
	}
}
