package mutants

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	"time"

	"golang.org/x/sync/errgroup"
)

// draw takes n mutants of a room at random: a place, then a change of it. What does not compile is drawn again.
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

// judgesOf returns the packages whose tests may kill mutants of a room: itself and its importers, tests that import it included, and for
// an importer without tests those that import it.
func judgesOf(root string, r *room) ([]*listed, error) {
	packages, err := list(root, "./...")
	if err != nil {
		return nil, err
	}
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
	return with, nil
}

// A suite is the test binary of one package.
type suite struct {
	name, dir, binary string
	tests             []*test // that pass without a mutant
}

type test struct {
	suite   *suite
	name    string
	reached map[int]bool // mutants whose functions it calls
	took    time.Duration
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// run runs tests with a mutant: 0 is none, -1 notes in reachedIn which ones are called. A test binary that takes more than 4 GB ends.
func (s *suite) run(tests []string, number int, limit time.Duration, reachedIn string) (passed bool, out string) {
	folder, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return false, err.Error()
	}
	defer os.RemoveAll(folder)
	ctx, cancel := context.WithTimeout(context.Background(), limit+10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", `ulimit -d 4194304; exec "$0" "$@"`, s.binary, "-test.timeout="+limit.String(),
		"-test.failfast", "-test.run=^("+strings.Join(tests, "|")+")$")
	cmd.WaitDelay = 5 * time.Second
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), selected+"="+strconv.Itoa(number), seen+"="+reachedIn, "TMPDIR="+folder,
		"RAPID_NOFAILFILE=true", "RAPID_SEED=1", "RAPID_SHRINKTIME=1ms") // a verdict stays as it is, and why is not asked
	text, err := cmd.CombinedOutput()
	return err == nil, string(text)
}

// prepare runs each test alone without a mutant: how long it takes, which mutants it reaches. A test that fails or takes longer than the
// limit does not judge; skipped are its name and why.
func (s *suite) prepare(limits limits, folder string) (skipped []string, err error) {
	cmd := exec.Command(s.binary, "-test.list=.")
	cmd.Dir = s.dir
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

// inParallel calls do for each item, workers of them at a time, and returns the first error.
func inParallel[T any](workers int, items []T, do func(T) error) error {
	var group errgroup.Group
	group.SetLimit(workers)
	for _, item := range items {
		group.Go(func() error { return do(item) })
	}
	return group.Wait()
}

// A verdict says how the tests answered to a mutant; killer is empty if it survived.
type verdict struct {
	*mutant
	killer string
}

// judge runs the tests for mutants of a room, several at a time.
func (r *room) judge(mutants []*mutant, limits limits, say func(format string, args ...any)) ([]verdict, error) {
	folder, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	packages, err := judgesOf(r.root, r)
	if err != nil {
		return nil, err
	}
	binaries, err := r.build(folder, mutants, packages)
	if err != nil {
		return nil, err
	}
	var tests []*test
	for i, p := range packages {
		s := &suite{name: strings.TrimPrefix(p.ImportPath, r.module+"/"), dir: p.Dir, binary: binaries[i]}
		skipped, err := s.prepare(limits, folder)
		if err != nil {
			return nil, err
		}
		for _, name := range skipped {
			say("%s: without a test of %s that does not pass by itself: %s", r.path, s.name, name)
		}
		tests = append(tests, s.tests...)
	}
	slices.SortFunc(tests, func(a, b *test) int {
		return cmp.Or(cmp.Compare(a.took, b.took), cmp.Compare(a.suite.name+a.name, b.suite.name+b.name))
	})
	say("%s: %d mutants, %d tests that reach one", r.path, len(mutants), len(slices.DeleteFunc(slices.Clone(tests), func(t *test) bool {
		return len(t.reached) == 0
	})))
	verdicts := make([]verdict, len(mutants))
	return verdicts, inParallel(limits.workers, mutants, func(m *mutant) error {
		i := slices.Index(mutants, m)
		verdicts[i] = verdict{m, killer(tests, i+1)}
		say("%s %s %s: %s", m.id, m.place(), m.change, cmp.Or(verdicts[i].killer, "SURVIVES"))
		return nil
	})
}

// limits are what one test may take without a mutant, and how many run at a time.
type limits struct {
	test    time.Duration
	workers int
}

// killer runs the tests that reach a mutant, the quick ones first, until one kills it, and names that. Tests of one package that together
// take no longer than those before share a process.
func killer(tests []*test, number int) string {
	var spent time.Duration
	tests = slices.DeleteFunc(slices.Clone(tests), func(t *test) bool { return !t.reached[number] })
	for len(tests) > 0 {
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
			return s.name + ": out of time"
		case name != nil:
			return s.name + ": " + name[1]
		default:
			return s.name + ": ended without a verdict"
		}
	}
	return ""
}

// wilson is the 95 % interval of a share.
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
