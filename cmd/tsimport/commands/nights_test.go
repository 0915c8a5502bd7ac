package commands

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/jobdir"
)

var (
	nightSeeds = flag.Int("night-seeds", 1, "seeds of simulated nights of a job")
	nightCount = flag.Int("nights", 6, "nights of each seed")
	nightSeed  = flag.Uint64("night-seed", 3, "first seed of them")
	nightsTold = flag.Bool("nights-told", false, "tell what happens")
)

const nightEndpoint = "http://embedded"

// season is a number of nights on which a job loads new files into six tables. The seed determines the faults.
type season struct {
	t                         *testing.T
	seed                      uint64
	r                         *rand.Rand
	mu                        sync.Mutex // guards r
	in                        string     // folder into which files are delivered
	disk                      string     // folder of everything that pods write
	state                     string     // shared folder for --state; "" if the machine keeps its disk
	machine, metricsFile, job string
	engine                    *server.Server
	tables                    []*nightTable

	night   int
	world   time.Time        // time of senders and of the service before the last bubble
	now     func() time.Time // time of senders and of the service inside the bubble
	booted  time.Time        // start of the machine, by that clock
	began   time.Time        // start of the last pod, by its own clock
	down    bool             // the service is down
	unclean bool             // a load may be unfinished
	beside  bool             // another machine has worked in this night
	last    float64          // time of the job's last success
	history []string         // events of this night

	pods, kills, faults, delivered, compared int
}

func (s *season) intn(below int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.r.IntN(below)
}

// fail ends the season with an error that contains the command to repeat it.
func (s *season) fail(format string, a ...any) {
	s.t.Helper()
	s.t.Fatalf("seed %d, night %d (%s): %s\nagain: go test ./cmd/tsimport/commands -run '^TestNightlyJob' -count 1 "+
		"-night-seed %d -nights %d",
		s.seed, s.night, strings.Join(s.history, "; "), fmt.Sprintf(format, a...), s.seed, s.night+1)
}

func (s *season) read(path string) string {
	text := conformance.Try(os.ReadFile(path)).Must(s.t)
	return string(text)
}

func (s *season) says(format string, a ...any) {
	if *nightsTold {
		s.t.Logf("night %d: %s", s.night, strings.ReplaceAll(fmt.Sprintf(format, a...), filepath.Dir(s.in), ""))
	}
}

func (s *season) note(format string, a ...any) {
	s.history = append(s.history, fmt.Sprintf(format, a...))
}

// TestNightlyJobSurvivesFaults runs a job on folders that senders fill; pods die, services fail, clocks are off. After
// each night, tables, known files, exit code, last line and metrics must match docs/how-to/nightly-files.md.
func TestNightlyJobSurvivesFaults(t *testing.T) {
	conformance.NotForRaces(t)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt) // starts its permanent goroutine outside of the bubbles
	signal.Stop(signals)
	zone := conformance.Try(time.LoadLocation("Europe/Berlin")).Must(t)
	local, link, uptime := time.Local, toServices, jobdir.Uptime
	t.Cleanup(func() { time.Local, toServices, jobdir.Uptime = local, link, uptime })
	time.Local, toServices = zone, func(c context.Context) http.RoundTripper { return c.Value(podOf{}).(*pod) }
	t.Chdir(t.TempDir()) // pods change the working folder
	t.Setenv("HOME", t.TempDir())
	t.Setenv("ALIBABA_CLOUD_ACCESS_KEY_ID", server.DefaultAccessKeyID)
	var pods, kills, faults, files, rows int
	for i := range *nightSeeds {
		seed := *nightSeed + uint64(i)
		t.Setenv("ALIBABA_CLOUD_ACCESS_KEY_SECRET", server.DefaultAccessKeySecret)
		root := t.TempDir()
		s := newSeason(t, root, seed)
		for s.night = range *nightCount {
			s.oneNight()
		}
		pods, kills, faults, files, rows = pods+s.pods, kills+s.kills, faults+s.faults, files+s.delivered, rows+s.compared
		must(t, os.RemoveAll(root))
	}
	t.Logf("%d seeds of %d nights: %d pods, %d of which died, %d faults of services, %d files, %d rows compared",
		*nightSeeds, *nightCount, pods, kills, faults, files, rows)
}

func newSeason(t *testing.T, root string, seed uint64) *season {
	s := &season{t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 0)), in: filepath.Join(root, "in"),
		disk: filepath.Join(root, "disk"), tables: nightTables()}
	jobdir.Uptime = func() time.Duration { return s.now().Sub(s.booted) }
	s.metricsFile, s.job = filepath.Join(s.disk, "night.prom"), filepath.Join(root, "night.yaml")
	must(t, os.MkdirAll(s.in, 0o700))
	must(t, os.MkdirAll(s.disk, 0o700))
	defaults := "create: true, only-new: true, max-errors: 10%, retry-for: 1m, concurrency: 4"
	if seed%2 == 0 {
		s.state = filepath.Join(s.disk, "state")
		must(t, os.MkdirAll(s.state, 0o700))
		defaults += ", state: " + s.state
	}
	text := fmt.Sprintf("version: 1\ntarget: {endpoint: %q, instance: %s}\ndefaults: {%s}\nparallel: %d\nloads:\n",
		nightEndpoint, server.DefaultInstance, defaults, 1+seed%3)
	for _, t := range s.tables {
		t.judged = judged{must: map[string]string{}, may: map[string]map[string]bool{}, taken: map[string]string{},
			bad: map[string]known{}, missed: map[string]int{}}
		text += fmt.Sprintf("  %s: {from: [%q], %s\n", t.name, filepath.Join(s.in, t.name+"-*"), t.keys)
	}
	must(t, os.WriteFile(s.job, []byte(text), 0o600))
	must(t, os.WriteFile(s.otherJob(), []byte(strings.ReplaceAll(text, s.state, s.otherState())), 0o600))
	return s
}

// otherState is the name that another machine has for the state, and otherJob the job file with that name.
func (s *season) otherState() string { return s.state + "-elsewhere" }
func (s *season) otherJob() string   { return strings.TrimSuffix(s.job, ".yaml") + "-elsewhere.yaml" }

// at calls do in a bubble. Its clock is ahead of that of senders and of the service by off.
func (s *season) at(off time.Duration, do func()) {
	outside := s.t
	defer func() { s.t = outside }()
	synctest.Test(outside, func(t *testing.T) {
		world := s.world
		time.Sleep(time.Until(world.Add(off)))
		began := time.Now()
		s.t, s.now = t, func() time.Time { return world.Add(time.Since(began)) }
		var err error
		s.engine, err = server.Open(filepath.Join(filepath.Dir(s.disk), "engine"), server.Options{NoSync: true, Now: s.now,
			Log: log.New(io.Discard, "", 0)})
		must(t, err)
		defer func() { conformance.Equal(t, s.engine.Close(), nil, "error") }()
		do()
		s.world = s.now()
	})
}

func (s *season) newMachine() {
	if s.machine != "" {
		must(s.t, os.Chdir(s.disk))
		must(s.t, os.RemoveAll(s.machine))
	}
	s.machine = filepath.Join(s.disk, fmt.Sprintf("machine-%d", s.night))
	s.booted = s.world.Add(-time.Duration(s.intn(1000)) * time.Hour)
	must(s.t, os.MkdirAll(s.machine, 0o700))
	must(s.t, os.Chdir(s.machine))
}

func (s *season) oneNight() {
	s.history, s.beside = nil, false
	s.world = time.Date(2000, 1, 2+s.night, 2, s.intn(60), s.intn(60), 0, time.Local)
	for _, t := range s.tables {
		s.deliver(t)
	}
	if s.night == 0 || s.state != "" && s.intn(3) == 0 {
		s.note("an empty disk")
		s.newMachine()
	}
	before := s.unclean
	p, clean := s.onePod()
	sure := clean && !before && !s.beside
	for !clean && s.intn(2) == 0 { // like the retries of a scheduler
		if s.state != "" && s.intn(3) == 0 {
			s.note("an empty disk")
			s.newMachine()
		}
		p, clean = s.onePod()
	}
	s.unclean = !clean || s.beside
	s.at(0, func() { s.judgeNight(p, clean, sure) })
}

func (s *season) judgeNight(p *pod, clean, sure bool) {
	of := map[string]outcome{}
	for _, t := range s.tables {
		of[t.name] = s.judge(t, clean, sure)
	}
	if sure && s.night%20 == 19 {
		s.prune()
	}
	if sure {
		s.judgeEnd(of, p)
		return
	}
	s.takeMetrics()
}

func (s *season) prune() {
	if p := s.newPod(fate{}).run("runs", "prune", "--keep", "3"); p.code != 0 {
		s.fail("runs prune: exit code %d: %s", p.code, p.said)
	}
}

// takeMetrics records the last successes of loads after a night with faults, which make them unpredictable.
func (s *season) takeMetrics() {
	got := s.metrics()
	keep := func(load string, last *float64) {
		if is := got["success_timestamp_seconds "+load]; is > *last-2*maxOff.Seconds() {
			*last = is
			return
		}
		s.fail("metrics: the last success of %s was forgotten", load)
	}
	keep("night", &s.last)
	for _, t := range s.tables {
		keep(t.name, &t.last)
	}
}

// maxOff limits the error of a working pod's clock. The service refuses clocks that are wrong by more than 15 minutes.
const maxOff = 14 * time.Minute

func (s *season) onePod() (p *pod, clean bool) {
	f, what := s.drawFate()
	off := time.Duration(0)
	if s.intn(3) == 0 {
		off = time.Duration(s.intn(int(2*maxOff/time.Second)))*time.Second - maxOff
	}
	if what == clockIsOff {
		off = time.Duration(1-2*s.intn(2)) * (time.Hour + time.Duration(s.intn(300))*time.Minute)
	}
	s.note("%s, clock off by %v", what, off)
	s.at(off, func() { p, clean = s.runPod(f, what) })
	return p, clean
}

func (s *season) runPod(f fate, what string) (p *pod, clean bool) {
	secret := server.DefaultAccessKeySecret
	switch what {
	case "the service is down":
		s.down = true
	case "the secret is wrong":
		secret = "wrong"
	case "the state is gone": // a file has its name
		must(s.t, os.Rename(s.state, s.state+".away"))
		must(s.t, os.WriteFile(s.state, nil, 0o600))
	case "the state is not mounted":
		must(s.t, os.Rename(s.state, s.state+".away"))
	}
	must(s.t, os.Setenv("ALIBABA_CLOUD_ACCESS_KEY_SECRET", secret))
	s.began = time.Now()
	s.pods++
	p = s.newPod(f)
	p.quiet, p.json = s.intn(2) == 0, s.intn(2) == 0
	var other sync.WaitGroup
	if what == "another pod" || what == "another machine" {
		beside, after := s.newPod(fate{}), time.Duration(s.intn(300))*time.Millisecond
		if what == "another machine" {
			beside.fate = []fate{{dies: 1 + s.intn(40), after: s.intn(2) == 0}, {stalls: 1 + s.intn(40)}, {}}[s.intn(3)]
		}
		other.Go(func() { s.runBeside(beside, after, what == "another machine") })
	}
	p.run("run", s.job, "--metrics-file", s.metricsFile)
	other.Wait()
	s.down = false
	if strings.HasPrefix(what, "the state is") {
		if err := os.Remove(s.state); what == "the state is not mounted" && !errors.Is(err, fs.ErrNotExist) {
			s.fail("a state was made over tables with rows: %v", err)
		}
		must(s.t, os.Rename(s.state+".away", s.state))
	}
	must(s.t, os.Setenv("ALIBABA_CLOUD_ACCESS_KEY_SECRET", server.DefaultAccessKeySecret))
	s.says("%s: exit code %d\n%s", what, p.code, p.said)
	if p.dead.Load() {
		s.kills++
		return p, false
	}
	s.judgeFault(what, p)
	s.judgeSaid(what, p)
	met := what != "" && what != "another pod" && what != "another machine" && what != "it dies" &&
		(what != "SIGTERM" || p.code == 143) && (f.fails == 0 || int(p.requests.Load()) >= f.fails)
	if met {
		s.faults++
	}
	return p, !met && (what != "another machine" || p.code != 1)
}

// runBeside runs a pod while another one works: it is refused, is too late or, on another machine, runs some loads.
func (s *season) runBeside(p *pod, after time.Duration, machine bool) {
	time.Sleep(after)
	s.pods++
	args := []string{"run", s.job}
	if machine {
		s.beside = true
		disk := filepath.Join(s.disk, "elsewhere")
		must(s.t, errors.Join(os.RemoveAll(disk), os.RemoveAll(s.otherState()), os.Symlink(s.state, s.otherState())))
		args = []string{"run", s.otherJob(), "--run-dir", filepath.Join(disk, "job")}
		p.unplug = s.otherState()
	}
	p.run(args...)
	s.says("beside it: exit code %d\n%s", p.code, p.said)
	must(s.t, os.RemoveAll(s.otherState()))
	if p.dead.Load() {
		s.kills++
		return
	}
	held := slices.ContainsFunc([]string{"is held by", "is running in process", "another process has taken over",
		"finished", "nothing is loaded"}, func(why string) bool { return strings.Contains(p.said, why) })
	// The pod's command names the state differently, so it counts as a different load.
	new := machine && p.code == 2 && !strings.Contains(p.said, "--state")
	conformance.True(s.t, p.code == 0 || p.code == 3 || new || p.still.Load() != nil || p.code == 1 && held,
		"a pod beside another: exit code %d: %s", p.code, p.said)
}

const clockIsOff = "its clock is off by hours"

func (s *season) judgeFault(what string, p *pod) {
	codes := map[string][]int{"": {0, 1, 3}, "the service is down": {1}, "the secret is wrong": {5}, clockIsOff: {5},
		"the service goes away": {0, 1, 3}, "SIGTERM": {143, 0, 1, 3}, "the state is gone": {1, 2},
		"the state is not mounted": {2}, "another pod": {0, 1, 3}, "another machine": {0, 1, 3}, "it dies": {0, 1, 3}}[what]
	if !slices.Contains(codes, p.code) {
		s.fail("%s: exit code %d: %s", what, p.code, p.said)
	}
}

func (s *season) drawFate() (f fate, what string) {
	if s.night == 0 {
		return f, ""
	}
	switch s.intn(16) {
	case 0, 1:
		return fate{dies: 1 + s.intn(60), after: s.intn(2) == 0}, "it dies"
	case 2:
		return fate{within: time.Duration(1+s.intn(1500)) * time.Millisecond}, "it dies"
	case 3:
		return fate{stopped: time.Duration(1+s.intn(1500)) * time.Millisecond}, "SIGTERM"
	case 4:
		return fate{fails: 1 + s.intn(60)}, "the service goes away"
	case 5:
		return f, []string{"the service is down", "the secret is wrong"}[s.intn(2)]
	case 6:
		if s.state != "" && s.intn(2) == 0 && !slices.ContainsFunc(s.tables,
			func(t *nightTable) bool { return len(t.must) == 0 }) {
			return f, "the state is not mounted"
		}
		if s.state != "" {
			return f, "the state is gone"
		}
		return f, "another pod"
	case 7, 9:
		if s.state != "" {
			return f, "another machine"
		}
	case 8:
		return f, []string{"", clockIsOff}[s.intn(2)]
	}
	return f, ""
}
