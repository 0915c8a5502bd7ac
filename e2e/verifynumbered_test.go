//go:build e2e

package e2e

import (
	"strings"
	"testing"
)

// TestReturnedKeysTellWhichRowIsWhichRecord: without the numbers that the service has made nobody could compare.
func TestReturnedKeysTellWhichRowIsWhichRecord(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	chat := fileOf("room,text", 500, func(i int) string {
		return []string{"hall", "yard", "gate", "\"two\r\nlines\""}[i%4] + ",text " + strings.Repeat("x", i%7)
	})
	p.write("chat.csv", chat)
	flags := strings.Fields("chat.csv --store store -t chat --pk room --pk id:auto --returned-keys keys.csv")
	p.ends(0, append([]string{"load", "--create", "--verify"}, flags...), "500 equal")
	verify := append([]string{"verify", "--extra", "fail"}, flags...)
	p.ends(0, verify, "500 rows expected, 500 equal, 0 missing, 0 different, 0 surplus")

	lines := strings.SplitAfter(p.read("keys.csv"), "\n")
	p.write("one.csv", lines[0]+lines[7])
	p.run(0, strings.Fields("load one.csv --store store -t chat --columns room,id --mode delete")...)
	p.ends(6, verify, "1 missing, 0 different, 0 surplus")

	p.write("keys.csv", strings.Join(append(lines[:7:7], lines[8:]...), "")) // without the key of that row
	p.ends(6, verify, "499 rows expected, 499 equal, 0 missing, 0 different, 0 surplus, 1 without a returned key")

	p.write("chat.csv", strings.Replace(chat, "yard,", "hall,", 1)) // another record
	p.ends(1, verify, "has another key than")

	p.write("keys.csv", "file,record,id\n") // of another table
	p.ends(2, verify, "its header is")
}
