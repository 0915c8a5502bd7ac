//go:build e2e

package e2e

import (
	"fmt"
	"testing"
)

// TestAHostileNetworkChangesNoRow gives the commands a network that cuts, delays, changes and repeats what comes through it.
func TestAHostileNetworkChangesNoRow(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.fill("t", 0, movedRows)
	for _, name := range []string{"loaded", "archived", "numbered", "copied", "synced"} {
		for seed := *first; seed < *first+uint64(*rounds); seed++ {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				t.Parallel()
				var without []string
				if name == "numbered" {
					without = []string{"replayed"} // which no load can see
				}
				m := p.move(t, fmt.Sprint(name, seed), seed, func() func(string) trouble { return drawTroubles(seed, 12, without...) })
				m.more = []string{"--request-timeout", troubledTimeout.String(), "--settle", troubledSettle.String(), "--batch-bytes", "2KiB"}
				ways[name](m)
			})
		}
	}
}

// TestAnswersWithoutASignatureDestroyNothing: TSIMPORT_UNSIGNED_ANSWERS is for what is read.
func TestAnswersWithoutASignatureDestroyNothing(t *testing.T) {
	t.Parallel()
	s := startServe(t, "--sync", "none")
	network := startProxy(t, s, 1, func(string) trouble { return unsigned })
	p := newPlace(t, s.env()...)
	p.run(0, "table", "create", "t", "--pk", "id:string")
	for value, code := range map[string]int{"": 1, "accept": 0, "yes": 2} {
		p.env = append(s.env(), "TABLESTORE_ENDPOINT="+network.URL, "TSIMPORT_UNSIGNED_ANSWERS="+value)
		p.run(code, "table", "list")
		says := []string{"TSIMPORT_UNSIGNED_ANSWERS"}
		if value != "yes" {
			says = append(says, "has no signature")
		}
		p.ends(max(code, 1), []string{"table", "drop", "t", "--yes"}, says...)
	}
}
