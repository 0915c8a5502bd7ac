package mutants

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/tsimport/internal/conformance"
)

var (
	count = flag.Int("mutants", 0, "how many mutants of each room to draw, with its rooms after /...")
	seeds = flag.String("seed", "1", "seeds of the draws, separated by spaces")
	rooms = flag.String("room", "", "rooms to draw from, as go list names them, separated by spaces; without it all "+
		"of drawnFrom")
	only    = flag.String("mutant", "", "the mutants of -room to run alone, separated by spaces")
	workers = flag.Int("workers", 2, "how many mutants to run at a time")
	longest = flag.Duration("longest", 90*time.Second, "tests that take longer alone do not judge")
	budget  = flag.Duration("budget", time.Hour,
		"how long tests judge one mutant, quick ones first; what survives is listed with the number of tests left")
)

// drawnFrom lists the packages in which a mistake can lose, duplicate or change rows.
const drawnFrom = "partitioner shuffle writer ratelimit pipeline/... reader/convert reader/csv reader/source " +
	"internal/tablestore/... jobs/knownfiles transfer/... jobs/scaleout"

// TestMutants prints the survivors. It fails only if it cannot run the mutants; a developer must judge each survivor.
func TestMutants(t *testing.T) {
	if *count == 0 && *only == "" {
		t.Skip("make mutants runs it")
	}
	root := filepath.Join("..", "..")
	known := readKnown(t, filepath.Join("testdata", "known.txt"))
	var all []*mutant
	var lines []string                // lines of the table: a package and a seed each
	drawnBy := map[string][]*mutant{} // drawn mutants by line of the table
	for _, name := range strings.Fields(*rooms + strings.Repeat(drawnFrom, 1-min(1, len(*rooms)))) {
		within := load(t, root, "./"+name)
		for _, seed := range strings.Fields(*seeds) {
			line := name + ", seed " + seed
			lines = append(lines, line)
			for _, m := range drawWithin(within, conformance.Try(strconv.ParseUint(seed, 10, 64)).Must(t), *count) {
				if i := slices.IndexFunc(all, func(o *mutant) bool { return o.id == m.id }); i >= 0 {
					m = all[i]
				} else {
					all = append(all, m)
				}
				drawnBy[line] = append(drawnBy[line], m)
			}
		}
		if *only != "" {
			for _, r := range within {
				all = append(all, slices.DeleteFunc(slices.Concat(r.sites()...),
					func(m *mutant) bool { return !slices.Contains(strings.Fields(*only), m.id) })...)
			}
			drawnBy[lines[0]] = all
		}
	}
	conformance.MustTrue(t, len(all) != 0, "%s has no mutant %s", *rooms, *only)
	verdicts := judge(t, all, limits{*longest, *budget, *workers}, say)
	fmt.Printf("\nsurvivors\n%s\n", survivors(verdicts, known))
	fmt.Printf("room | drawn | killed | equivalent | share killed of the others | 95 %% | not judged | dangerous\n")
	for _, line := range lines {
		fmt.Print(tally(line, slices.DeleteFunc(slices.Clone(verdicts),
			func(v verdict) bool { return !slices.Contains(drawnBy[line], v.mutant) }), known))
	}
}

// drawWithin draws n mutants of several packages. All places are equally likely.
func drawWithin(within []*room, seed uint64, n int) (drawn []*mutant) {
	var places []int // the index of each place's package
	for i, r := range within {
		places = append(places, slices.Repeat([]int{i}, len(r.sites()))...)
	}
	shares := make([]int, len(within))
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	for _, i := range places[:min(n, len(places))] {
		shares[i]++
	}
	for i, r := range within {
		drawn = append(drawn, r.draw(seed, shares[i])...)
	}
	return drawn
}

func say(format string, args ...any) {
	fmt.Printf("%s "+format+"\n", append([]any{time.Now().Format("15:04:05")}, args...)...)
}

// survivors formats the list of survivors, each with its class and reason if they are known.
func survivors(all []verdict, known map[string][2]string) string {
	var list strings.Builder
	for _, v := range all {
		was, isKnown := known[v.key()]
		switch {
		case v.killer != "" && isKnown:
			say("%s is killed, and known.txt has it as %s: strike it out", v.id, was[0])
		case v.killer == "":
			if !isKnown {
				was = [2]string{"not judged", "make mutants ROOM=" + v.room.path + " MUTANT=" + v.id}
			}
			fmt.Fprintf(&list, "%s %s %s: %s%s\n\t%s: %s\n", v.id, v.place(), v.function, v.change, v.unasked(), was[0], was[1])
		}
	}
	return list.String()
}

// tally formats one line of the table.
func tally(name string, all []verdict, known map[string][2]string) string {
	killed, by := 0, map[string]int{}
	for _, v := range all {
		switch was, isKnown := known[v.key()]; {
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

// classes lists the classes of survivors. A dangerous survivor harms rows or causes a wrong verdict or exit code.
var classes = []string{"equivalent", "harmless", "loud", "dangerous"}

// readKnown reads the classified survivors. Each line has a class, a mutant and a reason, separated by tabs.
func readKnown(t testing.TB, path string) map[string][2]string {
	text := conformance.Try(os.ReadFile(path)).Must(t)
	known := map[string][2]string{}
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		conformance.MustTrue(t, len(fields) == 3 && slices.Contains(classes, fields[0]),
			"line %d of %s: write one of %v, the mutant and the reason, separated by tabs", i+1, path, classes)
		known[fields[1]] = [2]string{fields[0], fields[2]}
	}
	return known
}

// TestKnownSurvivorsStillExist looks for each mutant of testdata/known.txt.
func TestKnownSurvivorsStillExist(t *testing.T) {
	known := readKnown(t, filepath.Join("testdata", "known.txt"))
	seen, names := map[string]bool{}, map[string]bool{}
	for key := range known {
		path, _, _ := strings.Cut(key, " ")
		names["./"+path] = true
	}
	rooms := load(t, filepath.Join("..", ".."), slices.Sorted(maps.Keys(names))...)
	for _, r := range rooms {
		for _, m := range slices.Concat(r.sites()...) {
			seen[m.key()] = true
		}
	}
	for key := range known {
		conformance.Equal(t, seen[key], true, "testdata/known.txt: no function can be changed like this any more: %s", key)
	}
}

// TestMutantsAreJudged judges every mutant of a small module whose test covers some of them.
func TestMutantsAreJudged(t *testing.T) {
	root := conformance.Try(filepath.Abs(filepath.Join("testdata", "small"))).Must(t)
	rooms := load(t, root, "./sums")
	r := rooms[0]
	all := slices.DeleteFunc(slices.Concat(r.sites()...), func(m *mutant) bool { return !r.compiles(m) })
	conformance.Equal(t, len(r.draw(1, 5)), 5, "mutants drawn")
	verdicts := judge(t, all, limits{time.Minute, time.Hour, 2}, t.Logf)
	var got []string
	for _, v := range verdicts {
		got = append(got, fmt.Sprintf("%s: %s: %s", v.function, v.change, v.killer))
	}
	slices.Sort(got)
	want := conformance.Try(os.ReadFile(filepath.Join("testdata", "small", "verdicts.txt"))).Must(t)
	text := strings.Join(got, "\n") + "\n"
	conformance.True(t, text == string(want), "got\n%swant\n%s", text, want)
}

func TestConfidenceInterval(t *testing.T) {
	for _, c := range []struct {
		hits, of  int
		low, high float64
	}{{0, 0, 0, 1}, {30, 30, 0.886, 1}, {0, 30, 0, 0.114}, {15, 30, 0.332, 0.668}} {
		if low, high := wilson(c.hits, c.of); math.Abs(low-c.low) > 0.001 || math.Abs(high-c.high) > 0.001 {
			t.Errorf("%d of %d: %.3f–%.3f, want %.3f–%.3f", c.hits, c.of, low, high, c.low, c.high)
		}
	}
}

// draw draws n mutants of a package: a place, then one of its changes. A mutant that does not compile is replaced.
func (r *room) draw(seed uint64, n int) []*mutant {
	sites := r.sites()
	random := rand.New(rand.NewPCG(seed, uint64(len(r.path))))
	random.Shuffle(len(sites), func(i, j int) { sites[i], sites[j] = sites[j], sites[i] })
	var drawn []*mutant
	for _, site := range sites {
		if len(drawn) == n {
			break
		}
		if m := site[random.IntN(len(site))]; r.compiles(m) {
			drawn = append(drawn, m)
		}
	}
	return drawn
}

// judgesOf returns the packages whose tests may kill mutants of r: r itself and its importers, including packages whose
// tests import it. An importer without tests is replaced with its own importers.
func judgesOf(packages []*listed, r *room) []*listed {
	own := r.module + "/" + r.path
	todo, found := []string{own}, map[string]bool{own: true}
	var with []*listed
	for len(todo) > 0 {
		of := todo[0]
		todo = todo[1:]
		for _, p := range packages {
			if p.ImportPath == own && of == own && p.hasTests() {
				with = append([]*listed{p}, with...)
			}
			if found[p.ImportPath] || !slices.Contains(slices.Concat(p.Imports, p.TestImports, p.XTestImports), of) {
				continue
			}
			found[p.ImportPath] = true
			if p.hasTests() {
				with = append(with, p)
			} else {
				todo = append(todo, p.ImportPath)
			}
		}
	}
	return with
}

// A suite is the test binary of one package.
type suite struct {
	*listed
	name, binary string
	tests        []*test // tests that pass without a mutant
}

type test struct {
	suite   *suite
	name    string
	reached map[int]bool // numbers of the mutants whose functions the test calls
	took    time.Duration
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// run runs tests with a mutant. Number 0 means no mutant; -1 records the reached mutants in the file reachedIn. A test
// binary is stopped when it uses more than 4 GB.
func (s *suite) run(tests []string, number int, limit time.Duration, reachedIn string) (passed bool, out string) {
	folder, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return false, err.Error()
	}
	defer os.RemoveAll(folder)
	ctx, cancel := context.WithTimeout(context.Background(), limit+10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", `ulimit -d 4194304; exec "$0" "$@"`, s.binary, "-test.timeout="+
		limit.String(),
		"-test.failfast", "-test.run=^("+strings.Join(tests, "|")+")$")
	cmd.WaitDelay = 5 * time.Second
	cmd.Dir, cmd.Env = s.Dir, append(os.Environ(), selected+"="+strconv.Itoa(number), seen+"="+reachedIn, "TMPDIR="+folder,
		"RAPID_NOFAILFILE=true", "RAPID_SEED=1", "RAPID_SHRINKTIME=1ms") // for reproducible verdicts; no shrinking
	text, err := cmd.CombinedOutput()
	return err == nil, string(text)
}

// prepare runs each test alone without a mutant to find out its duration and the mutants that it reaches. It leaves out
// a test that fails or exceeds the limit; skipped has the test's name and the reason.
func (s *suite) prepare(limits limits, folder string) (skipped []string, err error) {
	cmd := exec.Command(s.binary, "-test.list=.")
	cmd.Dir = s.Dir
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests of %s: %w", s.name, err)
	}
	var mutex sync.Mutex
	err = inParallel(limits.workers, strings.Fields(string(text)), func(name string) error {
		reachedIn := filepath.Join(folder, s.dirName()+name)
		start := time.Now()
		passed, out := s.run([]string{name}, -1, limits.test, reachedIn)
		t := &test{suite: s, name: name, reached: map[int]bool{}, took: time.Since(start)}
		text, err := os.ReadFile(reachedIn)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, n := range strings.Fields(string(text)) {
			number, _ := strconv.Atoi(n)
			t.reached[number] = true
		}
		mutex.Lock()
		defer mutex.Unlock()
		if passed {
			s.tests = append(s.tests, t)
		} else if len(t.reached) > 0 {
			out, _, _ = strings.Cut(out, "\n")
			skipped = append(skipped, name+": "+out)
		}
		return nil
	})
	return skipped, err
}

func (s *suite) dirName() string { return strings.ReplaceAll(s.name, "/", "-") + "-" }

// inParallel calls do for each item, in several goroutines, and returns the first error.
func inParallel[T any](workers int, items []T, do func(T) error) error {
	var group errgroup.Group
	group.SetLimit(workers)
	for _, item := range items {
		group.Go(func() error { return do(item) })
	}
	return group.Wait()
}

// A verdict is the result of a mutant. killer is the test that failed, empty for a survivor; left is the number of
// tests that were not run.
type verdict struct {
	*mutant
	killer string
	left   int
}

func (v verdict) unasked() string {
	return strings.Repeat(fmt.Sprintf(" (%d tests not asked)", v.left), min(1, v.left))
}

// judge builds the mutants once and runs the tests of each mutant's package and its importers, several in parallel.
func judge(t testing.TB, mutants []*mutant, limits limits, say func(format string, args ...any)) []verdict {
	folder := t.TempDir()
	packages := list(t, mutants[0].room.root, "./...")
	judges := map[*room][]*listed{}
	var suites []*suite
	for _, m := range mutants {
		if judges[m.room] != nil {
			continue
		}
		judges[m.room] = judgesOf(packages, m.room)
		for _, p := range judges[m.room] {
			if !slices.ContainsFunc(suites, func(s *suite) bool { return s.listed == p }) {
				suites = append(suites, &suite{listed: p, name: strings.TrimPrefix(p.ImportPath, m.room.module+"/")})
			}
		}
	}
	build(t, folder, mutants, suites, limits.workers)
	say("compiled %d mutants and the tests of %d rooms", len(mutants), len(suites))
	var tests []*test
	for _, s := range suites {
		for _, name := range conformance.Try(s.prepare(limits, folder)).Must(t) {
			say("without a test of %s that does not pass by itself: %s", s.name, name)
		}
		tests = append(tests, s.tests...)
	}
	slices.SortFunc(tests, func(a, b *test) int {
		return cmp.Or(cmp.Compare(a.took, b.took), cmp.Compare(a.suite.name+a.name, b.suite.name+b.name))
	})
	say("%d tests reach a mutant", len(slices.DeleteFunc(slices.Clone(tests),
		func(t *test) bool { return len(t.reached) == 0 })))
	verdicts := make([]verdict, len(mutants))
	conformance.Must(t, inParallel(limits.workers, mutants, func(m *mutant) error {
		i := slices.Index(mutants, m)
		asked := slices.DeleteFunc(slices.Clone(tests), func(t *test) bool {
			return !t.reached[i+1] || !slices.Contains(judges[m.room], t.suite.listed)
		})
		v := verdict{mutant: m}
		v.killer, v.left = killer(asked, i+1, limits.budget)
		verdicts[i] = v
		say("%s %s %s: %s%s", m.id, m.place(), m.change, cmp.Or(v.killer, "SURVIVES"), v.unasked())
		return nil
	}))
	return verdicts
}

// limits holds the maximum times for one test without a mutant and for all tests of a mutant, and the parallelism.
type limits struct {
	test, budget time.Duration
	workers      int
}

// killer runs tests in order until one kills the mutant, and returns its name, or the number of tests left when the
// budget is spent. Tests of a package share a process while they take no longer than the tests before them.
func killer(tests []*test, number int, budget time.Duration) (name string, left int) {
	var spent time.Duration
	for len(tests) > 0 && spent+tests[0].took <= budget {
		s := tests[0].suite
		var names []string
		var took time.Duration
		tests = slices.DeleteFunc(tests, func(t *test) bool {
			if t.suite != s || len(names) > 0 && took+t.took > max(spent, time.Second) {
				return false
			}
			names, took = append(names, t.name), took+t.took
			return true
		})
		spent += took
		passed, out := s.run(names, number, 3*took+10*time.Second, "")
		switch name := failed.FindStringSubmatch(out); {
		case passed:
		case strings.Contains(out, "panic: test timed out"):
			return s.name + ": out of time", 0
		case name != nil:
			return s.name + ": " + name[1], 0
		default:
			return s.name + ": ended without a verdict", 0
		}
	}
	return "", len(tests)
}

// wilson returns the 95 % confidence interval of a proportion.
func wilson(hits, of int) (low, high float64) {
	const z = 1.96
	if of == 0 {
		return 0, 1
	}
	n, p := float64(of), float64(hits)/float64(of)
	middle := p + z*z/(2*n)
	half := z * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return max(0, (middle-half)/(1+z*z/n)), min(1, (middle+half)/(1+z*z/n))
}
