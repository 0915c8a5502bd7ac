package commands

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/cmd/tsimport/advise"
	"example.com/tsimport/internal/conformance"
)

// TestCommandsInspectAnExistingTable has columns that only some rows have, and follows the advice.
func TestCommandsInspectAnExistingTable(t *testing.T) {
	tsimport := commandsIn(t)
	var rows strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&rows, `{"n":%d,"city":"c%d","age":%d,"made_at":"2026-01-%02dT%02d:%02d:00Z"}`+"\n", 1000+i, i%7, i%50, 1+i/120, i/5%24, i%5)
	}
	rows.WriteString(`{"n":9999,"late":"x"}` + "\n")
	put(t, "p.jsonl", rows.String())
	tsimport(0, "load", "p.jsonl", "-t", "p", "--create", "--pk", "n:integer", "-q")

	said := tsimport(0, "inspect", "ots://tsimport/p", "--count")
	for _, want := range []string{`rows +3,001`, `n +integer +0 +1000 +9999`, `age +integer +1 +0 +49`, `city +string +1 +c0 +c6`, `late +string +3,?000`} {
		conformance.Equal(t, regexp.MustCompile(want).MatchString(said), true, "%s is not in %s", want, said)
	}
	holds(t, tsimport(0, "inspect", "ots://tsimport/p", "--json"), `"format":"table"`)
	holds(t, tsimport(0, "check", "ots://tsimport/p", "--pk", "n", "--unique"), "3,001 keys, 0 records repeat a key")
	holds(t, tsimport(3, "check", "ots://tsimport/p", "--pk", "city", "--unique"), "7 keys", "1 would be rejected")
	advice := tsimport(0, "advise", "ots://tsimport/p", "--partitions", "8", "--rate", "8000")
	holds(t, advice, "n: not recommended: n is increasing", "it has all columns of the source's own key")
	command := regexp.MustCompile(`(?m)copy p (\S+) --pk '(.+)'$`).FindStringSubmatch(advice)
	conformance.MustTrue(t, command != nil, "no command to copy the table: %s", advice)
	tsimport(0, "copy", "p", command[1], "--pk", command[2], "-q")
	conformance.Equal(t, strings.TrimSpace(tsimport(0, "table", "count", command[1], "-q")), "3001", "rows of the copy")

	holds(t, tsimport(2, "inspect", "ots://tsimport/nope"), "does not exist")
	holds(t, tsimport(2, "inspect", "ots://tsimport/p", "p.jsonl"), "the only source")
	holds(t, tsimport(2, "check", "ots://elsewhere/p", "--pk", "n"), "no endpoint")
	holds(t, tsimport(2, "advise", "ots://tsimport/nope"), "does not exist")
}

var plantedTables = flag.Int("planted-tables", 5, "tables whose faults TestTableProblemsAreFound plants")

// TestTableProblemsAreFound creates tables without time columns: only the cells have timestamps.
func TestTableProblemsAreFound(t *testing.T) {
	conformance.NotForRaces(t)
	tsimport := commandsIn(t)
	began := time.Now().Add(-23 * time.Hour) // the service takes timestamps of a day
	kinds := []string{"", advise.HotValue, advise.HotRange, advise.Growing, advise.Cold}
	for i := range *plantedTables {
		kind, random := kinds[i%len(kinds)], rand.New(rand.NewPCG(uint64(i), 1))
		rows, keys := 2000+random.IntN(6000), 200+random.IntN(2000)
		moved := random.IntN(keys)
		var typed strings.Builder
		for r := range rows {
			recent, n := r > rows*2/3, random.IntN(keys)
			switch {
			case kind == advise.HotValue && random.IntN(3) == 0:
				n = moved
			case kind == advise.HotRange && recent && random.IntN(4) > 0:
				n = (moved + random.IntN(keys/20)) % keys
			case kind == advise.Growing:
				n = r * keys / rows
			case kind == advise.Cold && recent:
				n = keys/2 + random.IntN(keys/2)
			}
			key := fmt.Sprintf(`{"C":"card","V":%d,"IsInt":true}`, n)
			if i%2 == 1 {
				key = fmt.Sprintf(`{"C":"card","V":"%06d"}`, n)
			}
			fmt.Fprintf(&typed, `{"Wide":true,"PK":{"Values":[%s,{"C":"n","V":%d,"IsInt":true}]},"Attr":{"Values":[{"C":"v","V":1,"IsInt":true,"TS":%d}]}}`+"\n",
				key, r, began.Add(time.Duration(r)*10*time.Second).UnixMilli())
		}
		name := fmt.Sprintf("t%d", i)
		put(t, name+".jsonl", typed.String())
		card := []string{"card:integer", "card:string"}[i%2]
		tsimport(0, "load", name+".jsonl", "-t", name, "--create", "--pk", card, "--pk", "n:integer", "-q")
		var report advise.Report
		_, text, _ := strings.Cut(tsimport(0, "advise", "ots://tsimport/"+name, "--json"), "{")
		must(t, json.NewDecoder(strings.NewReader("{"+text)).Decode(&report))
		p, counted, found := report.Present, int64(0), ""
		for _, r := range p.Ranges {
			counted += r.Rows
		}
		for _, u := range p.Uneven {
			found += u.Kind
		}
		if counted != int64(rows) || len(p.Ranges) < 20 || found != kind {
			t.Errorf("table %d of %d rows, %d keys: found %q, want %q: %d rows in %d ranges, %+v", i, rows, keys, found, kind, counted, len(p.Ranges), p.Uneven)
		}
	}
}

// TestExplainAcceptsAValueRange includes a text with two dots.
func TestExplainAcceptsAValueRange(t *testing.T) {
	tsimport := commandsIn(t)
	key := []string{"explain", "--type", "n=integer", "--type", "s=string", "--pk", "k=pad(n,4)+s", "--value"}
	holds(t, tsimport(0, append(key, "n=15..100")...), "the rows of n=15..100 are in one range", `"k", "0015"`, `"k", "0100"`)
	holds(t, tsimport(0, append(key, "n=15", "--value", `s="a..b"`)...), `"k", "0015a..b"`)
	holds(t, tsimport(2, append(key, "n=15..2")...), "ends before it begins")
	holds(t, tsimport(2, append(key, "n=15..")...), "want an integer")
}
