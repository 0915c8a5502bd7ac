//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tsimport/bench"
)

// comparison is the part of a comparison's result that tests look at.
type comparison struct {
	OK                                                           bool
	Read, Rejected, Superseded, Equal, Missing, Different, Extra int64
	RowsExpected                                                 int64 `json:"rows_expected"`
	RowsInTable                                                  int64 `json:"rows_in_table"`
	SpilledRows                                                  int64 `json:"spilled_rows"`
	Examples                                                     []struct {
		Kind    string
		Key     map[string]int64
		Columns []string
	}
}

func verified(t *testing.T, wantCode int, args ...string) comparison {
	t.Helper()
	stdout, stderr, code := runBinary(t, append([]string{"verify", "--json"}, args...)...)
	if code != wantCode {
		t.Fatalf("verify: exit code %d, want %d; %s%s", code, wantCode, stdout, stderr)
	}
	var c comparison
	if err := json.Unmarshal([]byte(stdout), &c); err != nil {
		t.Fatalf("verify: %v in %s", err, stdout)
	}
	return c
}

func TestVerifyFindsEachOfAHundredCorruptions(t *testing.T) {
	t.Parallel()
	const rows = 20_000
	dir := t.TempDir()
	var text bytes.Buffer
	if err := (bench.StudentCards{Rows: rows}).WriteCSV(context.Background(), &text); err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(strings.Lines(text.String()))[1:]
	// Keys that come again, and records that are rejected.
	input := bench.CSVHeader + lines[4] + strings.Join(lines, "") + "7,short\n" + strings.Replace(lines[9], ",", ",\"", 1)
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	target := []string{"--table", "cards", "--pk", "CardID:integer", "--pk", "DeviceID:integer", "--pk", "OrderNumber:integer", "--store", dir + "/store"}
	load := func(wantCode int, args ...string) {
		t.Helper()
		args = append(append([]string{"load", "--run-dir", dir + "/run", "-q"}, target...), args...)
		if _, stderr, code := runBinary(t, args...); code != wantCode {
			t.Fatalf("load: exit code %d, want %d; %s", code, wantCode, stderr)
		}
	}
	file := write("cards.csv", input)
	load(3, file)
	whole := verified(t, 0, append(target, file, "--memory", "16MiB")...)
	if whole.Read != rows+3 || whole.RowsExpected != rows || whole.Equal != rows || whole.Rejected != 2 || whole.Superseded != 1 || whole.Extra != 0 {
		t.Fatalf("before anything is damaged: %+v", whole)
	}

	rnd := rand.New(rand.NewPCG(20, 26))
	var cells, missing, extra strings.Builder
	cells.WriteString("CardID,DeviceID,OrderNumber,SellerID,OrderTime,Amount,Item\n")
	missing.WriteString("CardID,DeviceID,OrderNumber\n")
	extra.WriteString(bench.CSVHeader)
	var want []string
	for i, n := range rnd.Perm(rows)[:100] {
		f := strings.Split(strings.TrimSpace(lines[n]), ",")
		card, device, order := f[0], f[2], f[3]
		switch i % 3 {
		case 0:
			column := rnd.IntN(4)
			values := make([]string, 4)
			values[column] = []string{"nobody", "never", "0.015625", "nothing"}[column]
			fmt.Fprintf(&cells, "%s,%s,%s,%s\n", card, device, order, strings.Join(values, ","))
			want = append(want, fmt.Sprintf("different %s %s %s [%s]", card, device, order, []string{"SellerID", "OrderTime", "Amount", "Item"}[column]))
		case 1:
			fmt.Fprintf(&missing, "%s,%s,%s\n", card, device, order)
			want = append(want, fmt.Sprintf("missing %s %s %s []", card, device, order))
		default:
			order = "-" + order
			fmt.Fprintf(&extra, "%s,A1,%s,%s,1.5,t,i\n", card, device, order)
			want = append(want, fmt.Sprintf("extra %s %s %s []", card, device, order))
		}
	}
	load(0, write("cells.csv", cells.String()), "--mode", "update", "--type", "SellerID=string", "--type", "OrderTime=string", "--type", "Amount=double", "--type", "Item=string")
	load(0, write("missing.csv", missing.String()), "--mode", "delete")
	load(0, write("extra.csv", extra.String()))

	found := verified(t, 6, append(target, file, "--examples", "100")...)
	var got []string
	for _, e := range found.Examples {
		got = append(got, fmt.Sprintf("%s %d %d %d %v", e.Kind, e.Key["CardID"], e.Key["DeviceID"], e.Key["OrderNumber"], e.Columns))
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := differs(want, got); diff != "" {
		t.Errorf("(-planted +found):\n%s", diff)
	}
	if found.Different != 34 || found.Missing != 33 || found.Extra != 33 || found.Equal != rows-34-33 {
		t.Errorf("%+v", found)
	}
}
