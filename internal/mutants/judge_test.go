package mutants

import (
	"cmp"
	"context"
	"fmt"
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

// judgesOf returns the packages whose tests may kill mutants of a room: itself and its importers, and for an importer without tests those
// that import it.
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
			if found[p.ImportPath] || !slices.Contains(p.Imports, of) {
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
	reached           map[int]bool // mutants whose functions its tests call
	skip              string       // tests that fail without a mutant
	took              time.Duration
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// run runs the tests with a mutant: 0 is none, -1 notes in reachedIn which ones are called. A test binary that takes more than 4 GB ends.
func (s *suite) run(number int, limit time.Duration, reachedIn string) (passed bool, out string) {
	folder, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return false, err.Error()
	}
	defer os.RemoveAll(folder)
	ctx, cancel := context.WithTimeout(context.Background(), limit+10*time.Second)
	defer cancel()
	args := []string{"-c", `ulimit -d 4194304; exec "$0" "$@"`, s.binary, "-test.timeout=" + limit.String(), "-test.skip=" + s.skip}
	if number > 0 {
		args = append(args, "-test.failfast")
	}
	cmd := exec.CommandContext(ctx, "sh", args...)
	cmd.WaitDelay = 5 * time.Second
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), selected+"="+strconv.Itoa(number), seen+"="+reachedIn, "TMPDIR="+folder,
		"RAPID_NOFAILFILE=true", "RAPID_SEED=1", "RAPID_SHRINKTIME=1ms") // a verdict stays as it is, and why is not asked
	text, err := cmd.CombinedOutput()
	return err == nil, string(text)
}

// prepare runs the tests without a mutant: how long they take, which mutants they reach, which ones fail anyway.
func (s *suite) prepare(limit time.Duration, folder string) error {
	for range 2 {
		reachedIn := filepath.Join(folder, "reached")
		if err := os.WriteFile(reachedIn, nil, 0o644); err != nil {
			return err
		}
		start := time.Now()
		passed, out := s.run(-1, limit, reachedIn)
		s.took, s.reached = time.Since(start), map[int]bool{}
		text, err := os.ReadFile(reachedIn)
		if err != nil {
			return err
		}
		for _, n := range strings.Fields(string(text)) {
			number, _ := strconv.Atoi(n)
			s.reached[number] = true
		}
		if passed {
			return nil
		}
		var names []string
		for _, m := range failed.FindAllStringSubmatch(out, -1) {
			names = append(names, regexp.QuoteMeta(strings.Split(m[1], "/")[0]))
		}
		if len(names) == 0 || s.skip != "" {
			out, _, _ = strings.Cut(out, "\n")
			return fmt.Errorf("without a mutant its tests do not pass in %v: %s", limit, out)
		}
		s.skip = "^(" + strings.Join(names, "|") + ")$"
	}
	return nil
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
	var suites []*suite
	for i, p := range packages {
		s := &suite{name: strings.TrimPrefix(p.ImportPath, r.module+"/"), dir: p.Dir, binary: binaries[i]}
		limit := limits.importer
		if s.name == r.path {
			limit = limits.own
		}
		if err := s.prepare(limit, folder); err != nil {
			say("%s: without the tests of %s: %v", r.path, s.name, err)
			continue
		}
		without := ""
		if s.skip != "" {
			without = " without " + s.skip
		}
		say("%s: judged by %s%s (%.0f s, reach %d of %d)", r.path, s.name, without,
			s.took.Seconds(), len(s.reached), len(mutants))
		suites = append(suites, s)
	}
	verdicts := make([]verdict, len(mutants))
	next := make(chan int)
	var workers sync.WaitGroup
	for range limits.workers {
		workers.Go(func() {
			for i := range next {
				m := mutants[i]
				verdicts[i] = verdict{m, killer(suites, i+1)}
				say("%s %s %s: %s", m.id, m.place(), m.change, cmp.Or(verdicts[i].killer, "SURVIVES"))
			}
		})
	}
	for i := range mutants {
		next <- i
	}
	close(next)
	workers.Wait()
	return verdicts, nil
}

// limits are what a room's tests and those of an importer may take without a mutant, and how many mutants run at a time.
type limits struct {
	own, importer time.Duration
	workers       int
}

// killer runs one suite after the other until one kills the mutant, and names the test.
func killer(suites []*suite, number int) string {
	for _, s := range suites {
		if !s.reached[number] {
			continue
		}
		passed, out := s.run(number, 3*s.took+10*time.Second, "")
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
