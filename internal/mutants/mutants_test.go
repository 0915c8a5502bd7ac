package mutants

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
)

var (
	count   = flag.Int("mutants", 0, "how many mutants of each room to draw, its rooms included where the name ends in /...")
	seeds   = flag.String("seed", "1", "seeds of the draws, separated by spaces")
	rooms   = flag.String("room", "", "rooms to draw from, as go list names them, separated by spaces; without it all of drawnFrom")
	only    = flag.String("mutant", "", "the mutant of -room to run alone")
	workers = flag.Int("workers", 2, "how many mutants to run at a time")
	longest = flag.Duration("longest", 90*time.Second, "tests that take longer alone do not judge")
)

// drawnFrom are the rooms in which a mistake loses, doubles or changes a row.
const drawnFrom = "partitioner shuffle writer ratelimit pipeline/... reader/convert reader/csv reader/source " +
	"internal/tablestore/... jobs/knownfiles transfer/... jobs/scaleout"

var must = conformance.Must

// TestMutants prints what survives. It fails only if it cannot judge: what a survivor means is for a person to say.
func TestMutants(t *testing.T) {
	if *count == 0 && *only == "" {
		t.Skip("make mutants runs it")
	}
	root := filepath.Join("..", "..")
	known, err := readKnown(filepath.Join("testdata", "known.txt"))
	must(t, err)
	var table, survive strings.Builder
	for _, name := range strings.Fields(*rooms + strings.Repeat(drawnFrom, 1-min(1, len(*rooms)))) {
		within, err := load(root, "./"+name)
		must(t, err)
		var sites []int // the room of each
		for i, r := range within {
			sites = append(sites, slices.Repeat([]int{i}, len(r.sites()))...)
		}
		bySeed := map[string][]string{} // the mutants that it draws
		draws := make([][]*mutant, len(within))
		for _, text := range strings.Fields(*seeds) {
			seed, err := strconv.ParseUint(text, 10, 64)
			must(t, err)
			shares, order := make([]int, len(within)), slices.Clone(sites)
			rand.New(rand.NewPCG(seed, 0)).Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
			for _, i := range order[:min(*count, len(order))] {
				shares[i]++
			}
			for i, r := range within {
				for _, m := range r.draw(seed, shares[i]) {
					bySeed[text] = append(bySeed[text], m.key(r.path))
					if !slices.ContainsFunc(draws[i], func(o *mutant) bool { return o.id == m.id }) {
						draws[i] = append(draws[i], m)
					}
				}
			}
		}
		var all []judged
		for i, r := range within {
			drawn := draws[i]
			if *only != "" {
				drawn = slices.DeleteFunc(slices.Concat(r.sites()...), func(m *mutant) bool { return m.id != *only })
			}
			if len(drawn) == 0 {
				continue
			}
			verdicts, err := r.judge(drawn, limits{*longest, *workers}, say)
			must(t, err)
			for _, v := range verdicts {
				all = append(all, judged{r, v})
			}
		}
		if *only != "" && len(all) == 0 {
			t.Fatalf("%s has no mutant %s", name, *only)
		}
		for _, text := range strings.Fields(*seeds) {
			own := slices.DeleteFunc(slices.Clone(all), func(v judged) bool { return *only == "" && !slices.Contains(bySeed[text], v.key(v.path)) })
			table.WriteString(tally(name+", seed "+text, own, known))
		}
		survive.WriteString(survivors(all, known))
	}
	fmt.Printf("\nsurvivors\n%s\n", &survive)
	fmt.Printf("room | drawn | killed | equivalent | share killed of the others | 95 %% | not judged | dangerous\n%s", &table)
}

func say(format string, args ...any) {
	fmt.Printf("%s "+format+"\n", append([]any{time.Now().Format("15:04:05")}, args...)...)
}

// judged is the verdict on a mutant of a room.
type judged struct {
	*room
	verdict
}

// survivors says what of a room survives, and how that was judged.
func survivors(all []judged, known map[string][2]string) string {
	var list strings.Builder
	for _, v := range all {
		was, isKnown := known[v.key(v.path)]
		switch {
		case v.killer != "" && isKnown:
			say("%s is killed, and known.txt has it as %s: strike it out", v.id, was[0])
		case v.killer == "":
			if !isKnown {
				was = [2]string{"not judged", "make mutants ROOM=" + v.path + " MUTANT=" + v.id}
			}
			fmt.Fprintf(&list, "%s %s %s: %s\n\t%s: %s\n", v.id, v.place(), v.function, v.verdict.change, was[0], was[1])
		}
	}
	return list.String()
}

// tally is the line of a table.
func tally(name string, all []judged, known map[string][2]string) string {
	killed, by := 0, map[string]int{}
	for _, v := range all {
		switch was, isKnown := known[v.key(v.path)]; {
		case v.killer != "":
			killed++
		case isKnown:
			by[was[0]]++
		default:
			by["not judged"]++
		}
	}
	of := len(all) - by["equivalent"]
	low, high := wilson(killed, of)
	return fmt.Sprintf("%s | %d | %d | %d | %.0f %% | %.0f–%.0f %% | %d | %d\n", name, len(all), killed, by["equivalent"],
		100*float64(killed)/float64(max(of, 1)), 100*low, 100*high, by["not judged"], by["dangerous"])
}

// classes are what a survivor can be: dangerous ones lose, double, change or reorder a row, or end in a wrong "equal" or exit code.
var classes = []string{"equivalent", "harmless", "loud", "dangerous"}

// readKnown reads the survivors that were judged: class, mutant and reason in each line, separated by tabs.
func readKnown(path string) (map[string][2]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	known := map[string][2]string{}
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 3 || !slices.Contains(classes, fields[0]) {
			return nil, fmt.Errorf("line %d of %s: write one of %v, the mutant and the reason, separated by tabs", i+1, path, classes)
		}
		known[fields[1]] = [2]string{fields[0], fields[2]}
	}
	return known, nil
}

// TestJudgedSurvivorsAreChangesOfToday looks for each mutant of testdata/known.txt.
func TestJudgedSurvivorsAreChangesOfToday(t *testing.T) {
	known, err := readKnown(filepath.Join("testdata", "known.txt"))
	must(t, err)
	seen, names := map[string]bool{}, map[string]bool{}
	for key := range known {
		path, _, _ := strings.Cut(key, " ")
		names["./"+path] = true
	}
	rooms, err := load(filepath.Join("..", ".."), slices.Sorted(maps.Keys(names))...)
	must(t, err)
	for _, r := range rooms {
		for _, m := range slices.Concat(r.sites()...) {
			seen[m.key(r.path)] = true
		}
	}
	for key := range known {
		if !seen[key] {
			t.Errorf("testdata/known.txt: no function can be changed like this any more: %s", key)
		}
	}
}

// TestAMutantIsKilledByTheTestThatSeesIt judges every mutant of a small module, some of which its test sees.
func TestAMutantIsKilledByTheTestThatSeesIt(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("testdata", "small"))
	must(t, err)
	rooms, err := load(root, "./sums")
	must(t, err)
	r := rooms[0]
	all := slices.DeleteFunc(slices.Concat(r.sites()...), func(m *mutant) bool { return !r.compiles(m) })
	conformance.Equal(t, len(r.draw(1, 5)), 5, "mutants drawn")
	verdicts, err := r.judge(all, limits{time.Minute, 2}, t.Logf)
	must(t, err)
	var got []string
	for _, v := range verdicts {
		got = append(got, fmt.Sprintf("%s: %s: %s", v.function, v.change, v.killer))
	}
	slices.Sort(got)
	want, err := os.ReadFile(filepath.Join("testdata", "small", "verdicts.txt"))
	must(t, err)
	if text := strings.Join(got, "\n") + "\n"; text != string(want) {
		t.Errorf("got\n%swant\n%s", text, want)
	}
}

func TestAnIntervalHoldsItsShare(t *testing.T) {
	for _, c := range []struct {
		hits, of  int
		low, high float64
	}{{0, 0, 0, 1}, {30, 30, 0.886, 1}, {0, 30, 0, 0.114}, {15, 30, 0.332, 0.668}} {
		if low, high := wilson(c.hits, c.of); math.Abs(low-c.low) > 0.001 || math.Abs(high-c.high) > 0.001 {
			t.Errorf("%d of %d: %.3f–%.3f, want %.3f–%.3f", c.hits, c.of, low, high, c.low, c.high)
		}
	}
}
