//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"tsimport/bench"
)

// synced runs a sync and returns what it says of itself.
func (p *place) synced(args ...string) (s syncSummary) {
	p.t.Helper()
	must(p.t, json.Unmarshal([]byte(p.output(append([]string{"sync", "--json", "--store", "store"}, args...)...)), &s))
	return s
}

// TestASyncCostsWhatHasChanged: the units that are charged are those of the changed rows.
func TestASyncCostsWhatHasChanged(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	var text bytes.Buffer
	must(t, bench.StudentCards{Rows: 5000}.WriteCSV(t.Context(), &text))
	p.write("cards.csv", text.String())
	p.run(0, append([]string{"load", "cards.csv"}, ofCards...)...)
	lines := strings.SplitAfter(text.String(), "\n")
	for i := 50; i < len(lines)-1; i += 250 {
		id, rest, _ := strings.Cut(lines[i], ",")
		lines[i] = id + ",another " + rest // the seller
	}
	p.write("cards.csv", strings.Join(lines, ""))
	at := []string{"cards.csv", "-t", "t", "--pk", "CardID", "--pk", "DeviceID", "--pk", "OrderNumber"}
	if s := p.synced(at...); s.Different != 20 || s.Written != 20 || s.Costs.WriteCU != 20 || s.Costs.PutCU != 20 || s.Costs.FullLoadCU != 5000 {
		t.Errorf("%+v", s)
	}
	p.ends(0, append([]string{"verify", "--store", "store", "--extra", "fail"}, at...))
}

// TestATableIsSyncedWithATable: values, types and timestamps, and a key that is computed.
func TestATableIsSyncedWithATable(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for table, text := range map[string]string{"source": "id,s,n\n1,x,1\n2,y,2\n3,z,3\n", "target": "id,s,n\n1,x,1\n4,q,4\n"} {
		p.run(0, "load", p.write(table+".csv", text), "--store", "store", "-t", table, "--pk", "id")
	}
	p.run(0, "load", p.write("keyed.csv", "k,s,n\n1-x,x,1\n"), "--store", "store", "-t", "keyed", "--pk", "k:string")
	const source = "ots://tsimport/source"
	p.run(6, "verify", source, "-t", "target", "--store", "store")
	if s := p.synced(source, "-t", "target", "--delete", "--max-delete", "2"); s.Missing != 2 || s.Different != 1 || s.Surplus != 1 || s.Written != 3 || s.Deleted != 1 { // timestamps differ
		t.Errorf("%+v", s)
	}
	p.run(0, "verify", source, "-t", "target", "--extra", "fail", "--store", "store")
	if s := p.synced(source, "-t", "target", "--delete"); s.Equal != 3 || s.Written+s.Deleted != 0 {
		t.Errorf("again: %+v", s)
	}
	p.synced(source, "-t", "keyed", "--pk", "k:string=text(id)", "--delete", "--max-delete", "100%")
	p.run(0, "verify", source, "-t", "keyed", "--pk", "k:string=text(id)", "--extra", "fail", "--store", "store")
	for args, want := range map[string]string{
		source + " -t source --delete":                        "the same table",
		"ots://tsimport/none -t target":                       "does not exist",
		source + " source.csv -t target":                      "other source",
		"ots://elsewhere/source -t target":                    "no endpoint",
		source + " -t keyed --pk k:string=s":                  "only id tell its",
		source + " -t keyed --pk k:string=text(bucket(id,2))": "several rows would get one key",
	} {
		p.ends(2, append([]string{"sync", "--store", "store"}, strings.Fields(args)...), want)
	}
}
