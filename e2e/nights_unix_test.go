//go:build e2e && unix

package e2e

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"tsimport/internal/objectstore/storetest"
)

var (
	podRounds = flag.Int("pod-rounds", 0, "rounds of nights whose pods are processes; 0 skips them")
	podNights = flag.Int("pod-nights", 3, "nights of a round")
	podSeed   = flag.Uint64("pod-seed", 1, "seed of the first round")
)

// podNight is a place into which files are delivered, and a table that pods load them into: processes, each in a working folder that
// vanishes with it. What outlives them is the state.
type podNight struct {
	t        *testing.T
	seed     uint64
	rnd      *rand.Rand
	s        *served
	kind     string // of the state's place: folder, s3 or oss
	drop     string // where files are delivered, as an input
	dropDir  string // if it is a folder
	place    string // of the state
	env      []string
	objects  *storetest.Server // nil for a folder
	marker   bool              // files are whole once they have a marker; else once they are settled
	atObject objectStrike

	files   map[string]*delivered // by name
	pending map[string]bool       // names that no completed load has seen yet
	next    int

	loaded map[string]int  // by content: how many loads that ended have its rejected record
	known  map[string]bool // contents that were delivered whole

	pods, kills, stops, refused, resumed, nothing int
}

// delivered is a file. Its last line is rejected by every load, so that a load's rejects name the contents it has loaded.
type delivered struct {
	family  string // its rows' keys
	content string // the name of its content
	rows    int
	half    bool // its writer is not done
	future  bool // its time is yet to come
}

func (d *delivered) text() string {
	var b strings.Builder
	b.WriteString("id,v\n")
	for i := range d.rows {
		fmt.Fprintf(&b, "%s-%03d,%s-%d\n", d.family, i, d.content, i)
	}
	fmt.Fprintf(&b, "bad-%s\n", d.content)
	return b.String()
}

// objectStrike is carried out when a request of the store of objects comes.
type objectStrike struct {
	mu    sync.Mutex
	left  int
	after bool // once the request has been carried out
	do    func()
}

func (o *objectStrike) arm(requests int, after bool, do func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.left, o.after, o.do = requests, after, do
}

func (o *objectStrike) request(after bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.do == nil || after != o.after {
		return
	}
	if o.left--; o.left <= 0 {
		o.do()
		o.do = nil
	}
}

func newPodNight(t *testing.T, seed uint64) *podNight {
	n := &podNight{t: t, seed: seed, rnd: rand.New(rand.NewPCG(seed, 30)), s: startServe(t, "--quiet"), kind: []string{"s3", "folder", "oss"}[seed%3],
		files: map[string]*delivered{}, pending: map[string]bool{}, loaded: map[string]int{}, known: map[string]bool{}}
	n.marker = n.rnd.IntN(2) == 0
	n.env = append(n.s.credentials(), "TABLESTORE_ENDPOINT="+n.s.URL, "TABLESTORE_INSTANCE="+n.s.Instance)
	if n.kind == "folder" {
		n.dropDir, n.place = t.TempDir(), filepath.Join(t.TempDir(), "state")
		n.drop = n.dropDir
		return n
	}
	around := &surroundings{T: t}
	n.objects = storetest.New(around, "states")
	n.drop, n.place = n.kind+"://states/drop/", n.kind+"://states/state"
	n.env = append(append(n.env, around.env...), "OSS_ENDPOINT="+n.objects.URL(), "OSS_REGION=cn-test")
	n.objects.Change(func(s *storetest.Server) {
		s.Fault = func(int, http.ResponseWriter, *http.Request) bool { n.atObject.request(false); return false }
		s.After = func(int, *http.Request) { n.atObject.request(true) }
	})
	return n
}

// write puts text where files are delivered, as of a time.
func (n *podNight) write(name, text string, at time.Time) {
	if n.objects != nil {
		n.objects.Set("drop/"+name, text, at)
		return
	}
	// Renamed into place, as a reader may be there: a file that grows while it is read is another test.
	full, beside := filepath.Join(n.dropDir, name), filepath.Join(n.t.TempDir(), name)
	must(n.t, os.WriteFile(beside, []byte(text), 0o600))
	must(n.t, os.Chtimes(beside, at, at))
	must(n.t, os.Rename(beside, full))
}

func (n *podNight) remove(name string) {
	if n.objects != nil {
		n.objects.Remove("drop/" + name)
		return
	}
	must(n.t, os.Remove(filepath.Join(n.dropDir, name)))
}

// finish delivers a file whole.
func (n *podNight) finish(name string, at time.Time) {
	d := n.files[name]
	d.half, d.future = false, false
	n.write(name, d.text(), at)
	if n.marker {
		n.write(name+".done", "", at)
	}
	n.pending[name], n.known[d.content] = true, true
}

// finishSome finishes one in so many of the files whose writers are not done.
func (n *podNight) finishSome(of int) {
	for _, name := range slices.Sorted(maps.Keys(n.files)) {
		if d := n.files[name]; (d.half || d.future) && n.rnd.IntN(of) == 0 {
			n.finish(name, time.Now().Add(-90*time.Minute))
		}
	}
}

// deliver does one of the things that happen to deliveries.
func (n *podNight) deliver() {
	n.next++
	content := fmt.Sprintf("c%d", n.next)
	settled := time.Now().Add(-time.Duration(100+n.rnd.IntN(60)) * time.Minute)
	var old string // a file that every load so far has seen, and that has no copy
	if seen := slices.DeleteFunc(slices.Sorted(maps.Keys(n.files)), func(name string) bool { return n.pending[name] || n.files[name].half || n.files[name].future }); len(seen) > 0 {
		old = seen[n.rnd.IntN(len(seen))]
	}
	fresh := fmt.Sprintf("f%03d.csv", n.next)
	d := &delivered{family: fmt.Sprintf("k%03d", n.next), content: content, rows: 1 + n.rnd.IntN(900)}
	what := n.rnd.IntN(8)
	if old == "" {
		what %= 3
	}
	if n.next == 1 {
		what = 0 // there is something to load
	}
	switch what {
	case 1: // late
		n.files[fresh] = d
		n.finish(fresh, time.Now().Add(-72*time.Hour))
	case 2: // half written, or of a clock that is fast
		n.files[fresh] = d
		if d.future = !n.marker && n.rnd.IntN(3) == 0; d.future {
			n.write(fresh, d.text(), time.Now().Add(3*time.Hour))
			return
		}
		d.half = true
		n.write(fresh, d.text()[:n.rnd.IntN(len(d.text()))], time.Now())
	case 3: // again, with a new time
		n.finish(old, settled)
	case 4: // a copy
		o := *n.files[old]
		n.files["copy-"+fresh] = &o
		n.finish("copy-"+fresh, settled)
	case 5: // renamed
		n.files[fresh] = n.files[old]
		delete(n.files, old)
		n.remove(old)
		if n.marker {
			n.remove(old + ".done")
		}
		n.finish(fresh, settled)
	case 6, 7: // changed
		o := n.files[old]
		for name, other := range n.files {
			if name != old && other.family == o.family {
				return // which one of the two would win depends on their order
			}
		}
		o.content, o.rows = content, o.rows+n.rnd.IntN(2)*n.rnd.IntN(50)
		n.finish(old, settled)
	default:
		n.files[fresh] = d
		n.finish(fresh, settled)
	}
}

// nightPod is a process.
type nightPod struct {
	pod
	out, err bytes.Buffer
	signal   func(syscall.Signal)
	ended    chan struct{} // closed
	code     int
	stopped  bool // past its leases
}

func (n *podNight) start() *nightPod {
	dir, err := os.MkdirTemp("", "pod-")
	must(n.t, err)
	p := &nightPod{pod: pod{dir: dir, s: n.s}, ended: make(chan struct{})}
	args := []string{"load", n.drop, "--table", "nights", "--pk", "id", "--create", "--only-new", "--reload-changed", "--files-by", "time", "--state", n.place,
		"--max-errors", "-1", "--settle", "1s", "--request-timeout", "1s", "--max-rows-per-second", fmt.Sprint(300 + n.rnd.IntN(900)), "--json"}
	if n.marker {
		args = append(args, "--done-marker", "{}.done")
	} else {
		args = append(args, "--settle-files", "1h")
	}
	cmd := p.command(args...)
	cmd.Env = append(cmd.Env, n.env...)
	if n.rnd.IntN(2) == 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("TSIMPORT_CHECKPOINT_EVERY=%dms", 50+n.rnd.IntN(500)))
	}
	cmd.Stdout, cmd.Stderr = &p.out, &p.err
	must(n.t, cmd.Start())
	n.pods++
	killer := time.AfterFunc(processTimeout, func() { cmd.Process.Kill() })
	p.signal = func(s syscall.Signal) { cmd.Process.Signal(s) } // it may have ended by itself
	n.t.Cleanup(func() {
		p.signal(syscall.SIGKILL) // also of one that is stopped
		<-p.ended
		os.RemoveAll(dir)
	})
	go func() {
		cmd.Wait() // its error is the exit code
		killer.Stop()
		p.code = cmd.ProcessState.ExitCode()
		close(p.ended)
	}()
	return p
}

// strike sends a signal to a pod at a moment that is drawn: at a request of the store of objects, or by time. It reports whether the pod
// had not ended before.
func (n *podNight) strike(p *nightPod, s syscall.Signal) bool {
	struck := make(chan struct{})
	act := sync.OnceFunc(func() { p.signal(s); close(struck) })
	if n.objects != nil && n.rnd.IntN(2) == 0 {
		n.atObject.arm(1+n.rnd.IntN(60), n.rnd.IntN(2) == 0, act)
		defer n.atObject.arm(0, false, nil)
	} else {
		timer := time.AfterFunc(time.Duration(n.rnd.IntN(1200))*time.Millisecond, act)
		defer timer.Stop()
	}
	select {
	case <-struck:
		return true
	case <-p.ended:
		return false
	}
}

// night delivers files and runs pods that overlap, of which some are killed and some are stopped past their leases.
func (n *podNight) night(last bool) {
	n.finishSome(2)
	for range 2 + n.rnd.IntN(3) {
		n.deliver()
	}
	if last {
		n.finishSome(1)
	}
	var whole, zombies []*nightPod
	for range 1 + n.rnd.IntN(3) {
		p := n.start()
		switch fate := n.rnd.IntN(10); {
		case fate < 7:
			n.strike(p, syscall.SIGKILL)
			n.gone(p)
		case fate < 8:
			if n.strike(p, syscall.SIGSTOP) {
				p.stopped = true
				zombies = append(zombies, p)
			} else {
				n.check(p)
			}
		default:
			whole = append(whole, p)
		}
	}
	for _, p := range whole {
		n.check(p)
	}
	if len(zombies) == 0 && !last && n.rnd.IntN(4) == 0 {
		return // what is unfinished, the next night resumes
	}
	for tries := 0; n.check(n.start()) != "nothing new"; tries++ { // one resumes, one loads what has come meanwhile
		if tries == 3 {
			n.t.Fatalf("seed %d: four pods in turn did not load all", n.seed)
		}
	}
	for _, p := range zombies {
		p.signal(syscall.SIGCONT)
		if n.check(p) == "refused" {
			n.stops++
		}
	}
	clear(n.pending)
	for name, d := range n.files {
		if d.half || d.future {
			n.pending[name] = true
		}
	}
	n.compare("nights")
}

// gone forgets a pod that was killed, and its folder, unless it has ended by itself before.
func (n *podNight) gone(p *nightPod) {
	<-p.ended
	if p.code != -1 {
		n.check(p)
		return
	}
	n.kills++
	must(n.t, os.RemoveAll(p.dir))
}

// stoppedSays is with what a pod ends that was stopped past its lease: what it finds first.
var stoppedSays = regexp.MustCompile(`another process has taken over|the lease could not be renewed in time|another process has written to it meanwhile`)

var rejectedContent = regexp.MustCompile(`bad-(c[0-9]+)`)

// check looks at how a pod has ended that was not killed: loaded, refused or nothing new.
func (n *podNight) check(p *nightPod) (how string) {
	t := n.t
	t.Helper()
	<-p.ended
	defer os.RemoveAll(p.dir)
	if strings.Contains(p.err.String(), "resuming run") {
		n.resumed++
	}
	switch {
	case p.code == 1 && p.stopped && stoppedSays.MatchString(p.err.String()),
		p.code == 1 && strings.Contains(p.err.String(), "is held by"):
		n.refused++
		return "refused"
	case p.code == 0 && strings.Contains(p.err.String(), "nothing new"):
		n.nothing++
		return "nothing new"
	case p.code != 3:
		t.Fatalf("seed %d: exit code %d: %s", n.seed, p.code, p.err.Bytes())
	}
	var sum struct {
		crashSummary
		RejectsFiles []string `json:"rejects_files"`
	}
	if err := json.Unmarshal(p.out.Bytes(), &sum); err != nil || len(sum.RejectsFiles) == 0 {
		t.Fatalf("seed %d: %v: %s", n.seed, err, p.out.Bytes())
	}
	rejects, err := os.ReadFile(filepath.Join(p.dir, sum.RejectsFiles[0]))
	must(t, err)
	found := rejectedContent.FindAllStringSubmatch(string(rejects), -1)
	for _, f := range found {
		if n.loaded[f[1]]++; n.loaded[f[1]] > 1 {
			t.Errorf("seed %d: content %s was loaded %d times\n%s", n.seed, f[1], n.loaded[f[1]], p.err.Bytes())
		}
	}
	if sum.State != "finished" || sum.Rejected != len(found) || sum.Written+sum.Rejected+sum.Superseded != sum.Read || sum.Unfinished != 0 {
		t.Errorf("seed %d: %+v with %d rejects\n%s", n.seed, sum, len(found), p.err.Bytes())
	}
	return "loaded"
}

// compare compares a table with what the files that were delivered whole make of it, by the oracle.
func (n *podNight) compare(name string) (rows int) {
	t := n.t
	t.Helper()
	want := map[string]string{}
	for file, d := range n.files {
		if d.half || d.future {
			continue
		}
		for i := range d.rows {
			key := fmt.Sprintf("%s-%03d", d.family, i)
			if v, there := want[key]; there && v != fmt.Sprintf("%s-%d", d.content, i) {
				t.Fatalf("the oracle does not know which content of %s wins: %s", key, file)
			}
			want[key] = fmt.Sprintf("%s-%d", d.content, i)
		}
	}
	got := map[string]string{}
	sv := &service{TableStoreClient: newClient(n.s.URL, n.s.Instance, n.s.AccessKeyID, n.s.AccessKeySecret)}
	tb := &table{service: sv, name: name}
	low, high := new(tablestore.PrimaryKey), new(tablestore.PrimaryKey)
	low.AddPrimaryKeyColumnWithMinValue("id")
	high.AddPrimaryKeyColumnWithMaxValue("id")
	for _, r := range tb.scan(t, low, high) {
		if len(r.Cells) != 1 {
			t.Fatalf("row %v", r)
		}
		got[r.Key[0].(string)] = r.Cells[0].Value.(string)
	}
	if maps.Equal(got, want) {
		return len(got)
	}
	wrong := 0
	for k, v := range want {
		if got[k] != v {
			if wrong++; wrong < 4 {
				t.Errorf("seed %d: table %s: row %s is %q, want %q", n.seed, name, k, got[k], v)
			}
		}
	}
	t.Fatalf("seed %d: table %s has %d rows, want %d; %d are missing or wrong", n.seed, name, len(got), len(want), wrong)
	return 0
}

// checkKnown checks that the state knows each file, and each content once.
func (n *podNight) checkKnown() {
	t := n.t
	p := &pod{dir: t.TempDir(), s: n.s}
	cmd := p.command("files", "--table", "nights", "--state", n.place, "--json")
	cmd.Env = append(cmd.Env, n.env...)
	out, err := cmd.Output()
	must(t, err)
	var files []struct {
		Name, Hash string
		SameAs     string `json:"same_as"`
	}
	must(t, json.Unmarshal(out, &files))
	names, first := map[string]int{}, map[string]int{}
	for _, f := range files {
		names[f.Name[strings.LastIndexByte(f.Name, '/')+1:]]++
		if f.SameAs == "" {
			first[f.Hash]++
		}
	}
	for name := range n.files {
		if names[name] != 1 {
			t.Errorf("seed %d: file %s is known %d times", n.seed, name, names[name])
		}
	}
	for hash, times := range first {
		if times > 1 {
			t.Errorf("seed %d: content %s was loaded under %d names", n.seed, hash, times)
		}
	}
}

// once loads the final files into a table of their own.
func (n *podNight) once() {
	p := &pod{dir: n.t.TempDir(), s: n.s}
	args := []string{"load", n.drop, "--table", "once", "--pk", "id", "--create", "--files-by", "time", "--max-errors", "-1"}
	if n.marker {
		args = append(args, "--done-marker", "{}.done")
	}
	cmd := p.command(args...)
	cmd.Env = append(cmd.Env, n.env...)
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 3 {
		n.t.Fatalf("seed %d: %s", n.seed, out)
	}
}

// TestNightsOfPodsThatAreKilledLeaveTheTableOfOneLoad delivers files late, again, renamed, changed and half written, night after night.
// Pods that overlap load what is new; some are killed, some are stopped until others have taken over. In the end the table is what one
// load of the final files makes of it, and no content was loaded twice. The leases are real ones: a pod that is killed costs 30 seconds.
func TestNightsOfPodsThatAreKilledLeaveTheTableOfOneLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for leases")
	}
	if *podRounds == 0 {
		t.Skip("waits for leases of half a minute to end: make nights, or -pod-rounds 1")
	}
	for seed := *podSeed; seed < *podSeed+uint64(*podRounds); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			n := newPodNight(t, seed)
			for night := range *podNights {
				n.night(night == *podNights-1)
			}
			n.checkKnown()
			n.once()
			n.compare("once")
			t.Logf("seed %d, %s: %d nights, %d contents, %d pods, %d killed, %d stopped past their leases, %d refused, %d resumed, %d found nothing new, %d rows, %.0f s",
				seed, n.kind, *podNights, len(n.known), n.pods, n.kills, n.stops, n.refused, n.resumed, n.nothing, n.compare("nights"), time.Since(began).Seconds())
		})
	}
}
