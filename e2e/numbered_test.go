//go:build e2e

package e2e

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// readCSV returns the records of a CSV file, without its header, which must be the one given.
func readCSV(t *testing.T, text, header string) [][]string {
	t.Helper()
	records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(records) == 0 || strings.Join(records[0], ",") != header {
		t.Fatalf("%v: want a CSV file with the header %s, got %.200q", err, header, text)
	}
	return records[1:]
}

// TestLostAnswersLeaveNoRowTwiceInANumberedTable loads through a server that applies requests and cuts the connection, answers
// an error, or applies them late: every record is one row, numbers rise in the order of the file, and the keys returned are
// those in the table.
func TestLostAnswersLeaveNoRowTwiceInANumberedTable(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	s := startServe(t, "--fault-rate", "0.2", "--fault-kinds", "drop-after,error-after,apply-late", "--fault-delay", "20ms", "--random-seed", "3")
	for name, value := range map[string]string{
		"TABLESTORE_ENDPOINT": s.URL, "TABLESTORE_INSTANCE": s.Instance,
		"TABLESTORE_ACCESS_KEY_ID": s.AccessKeyID, "TABLESTORE_ACCESS_KEY_SECRET": s.AccessKeySecret,
	} {
		t.Setenv(name, value)
	}
	dir := t.TempDir()
	input := filepath.Join(dir, "in.csv")
	var text strings.Builder
	text.WriteString("user,what\n")
	for i := range 400 {
		fmt.Fprintf(&text, "u%d,w%d\n", i*7%40, i)
	}
	if err := os.WriteFile(input, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(dir, "keys.csv")
	stdout, stderr, code := runBinary(t, "load", input, "--table", "t", "--create", "--pk", "user:string", "--pk", "seq:auto",
		"--settle", "300ms", "--returned-keys", keys, "--run-dir", filepath.Join(dir, "run"), "--json")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var summary struct{ Written, Searched, Found int64 }
	if err := json.Unmarshal([]byte(stdout), &summary); err != nil || summary.Written != 400 || summary.Found == 0 {
		t.Errorf("%v, %+v", err, summary)
	}
	stdout, stderr, code = runBinary(t, "export", "--table", "t")
	if code != 0 {
		t.Fatalf("export: exit code %d: %s", code, stderr)
	}
	numbers := map[string]string{}
	for _, r := range readCSV(t, stdout, "user,seq,_tsimport,what") {
		if numbers[r[3]] != "" {
			t.Errorf("%s is there twice", r[3])
		}
		numbers[r[3]] = r[1]
	}
	returned, err := os.ReadFile(keys)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range readCSV(t, string(returned), "file,record,user,seq") {
		got[r[1]] = r[3]
	}
	last := map[string]int64{}
	for i, r := range readCSV(t, text.String(), "user,what") {
		n, err := strconv.ParseInt(numbers[r[1]], 10, 64)
		if err != nil || n <= last[r[0]] {
			t.Errorf("record %d: number %q behind %d", i+1, numbers[r[1]], last[r[0]])
		}
		last[r[0]] = n
		if got[strconv.Itoa(i+1)] != numbers[r[1]] {
			t.Errorf("record %d: %q returned, %q is there", i+1, got[strconv.Itoa(i+1)], numbers[r[1]])
		}
	}
	if len(numbers) != 400 || len(got) != 400 {
		t.Errorf("%d rows, %d keys", len(numbers), len(got))
	}
}
