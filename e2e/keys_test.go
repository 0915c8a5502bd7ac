//go:build e2e

package e2e

import (
	"crypto/md5"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTheLastRowOfEachComputedKeyStays loads rows whose computed keys come again and again, some of them refused, and compares
// the table with what a plain loop makes of them.
func TestTheLastRowOfEachComputedKeyStays(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 6))
	var text strings.Builder
	text.WriteString("卡 号,seller,n\n")
	last := map[string]string{}
	rejected := 0
	for i := range 5000 {
		card, seller := random.IntN(320)-20, []string{"a100", "a1001", "b c", "é"}[random.IntN(4)]
		fmt.Fprintf(&text, "%d,%s,%d\n", card, seller, i)
		if card < 0 || strings.Contains(seller, " ") {
			rejected++
			continue
		}
		key := fmt.Sprintf("%x", md5.Sum(fmt.Append(nil, card)))[:4] + fmt.Sprintf("%04d,%s", card, seller)
		last[key] = fmt.Sprintf("k=%s|n=%d|seller=%s|up=%s!|卡 号=%d", key, i, seller, strings.ToUpper(seller), card)
	}
	var want []string
	for _, row := range last {
		want = append(want, row)
	}
	slices.Sort(want)
	dir := t.TempDir()
	input, store := filepath.Join(dir, "in.csv"), filepath.Join(dir, "store")
	if err := os.WriteFile(input, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := runBinary(t, "load", input, "--store", store, "--run-dir", filepath.Join(dir, "run"), "--table", "t", "--json", "--max-errors", "-1",
		"--pk", `k=md5(col("卡 号"), 4) + splice(",", pad(col("卡 号"), 4), seller)`, "--set", `up=upper(seller) + "!"`)
	var summary struct{ Rejected int }
	if err := json.Unmarshal([]byte(stdout), &summary); err != nil || code != 3 || summary.Rejected != rejected {
		t.Fatalf("exit code %d, %d rejected, want %d (%v): %s", code, summary.Rejected, rejected, err, stderr)
	}
	if !strings.Contains(stderr, "load --retry-rejects "+filepath.Join(dir, "run")) {
		t.Errorf("the command for corrected rejects: %s", stderr)
	}
	stdout, stderr, code = runBinary(t, "export", "--store", store, "--table", "t", "-o", "-")
	if code != 0 {
		t.Fatal(stderr)
	}
	if got := csvRecords(t, []byte(stdout)); !slices.Equal(got, want) {
		t.Errorf("%d rows, want %d", len(got), len(want))
	}
}
