package commands

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing/synctest"
	"time"
	"unicode/utf16"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/pipeline"
)

// nightTable is a table of the job with its sender's files.
type nightTable struct {
	name, keys string // keys are further settings of the load in the job
	header     string
	once       bool // rows are numbered or added, so none may be sent twice
	reload     bool // changed files are loaded again
	settle     time.Duration

	files  map[string]*delivery // present files by name
	serial int
	judged
}

func nightTables() []*nightTable {
	const types = ", type: {item: string, n: integer}}"
	plain := "pk: [id:integer]"
	all := []*nightTable{
		{name: "orders", keys: plain + ", columns: [id, item, n]" + types},
		{name: "items", keys: plain + types},
		{name: "prices", keys: plain + ", reload-changed: true" + types, reload: true},
		{name: "stock", keys: plain + ", files-by: time, settle-files: 10m" + types, settle: 10 * time.Minute},
		{name: "visits", keys: plain + ", mode: increment, type: {n: integer}}", header: "id,n\n", once: true},
		{name: "journal", keys: "pk: [shop, number:auto], type: {shop: string, ref: string, n: integer}}",
			header: "shop,ref,n\n", once: true},
	}
	for _, t := range all {
		t.files = map[string]*delivery{}
		if t.header == "" {
			t.header = "id,item,n\n"
		}
	}
	return all
}

type flaw string

const (
	sound   flaw = ""
	cut     flaw = "cut"
	columns flaw = "columns"
	errorsy flaw = "errors" // more bad rows than the limit
	blank   flaw = "blank"  // empty
)

type delivery struct {
	name    string
	body    []byte
	rows    []nightRow
	flaw    flaw
	changed time.Time
	arrived int    // the night before which this version was delivered
	before  []byte // body of a cut file before the cut
	whole   []nightRow
}

type nightRow struct {
	key, value string
	bad        bool
}

func (d *delivery) rejects() (n int) {
	for _, r := range d.rows {
		if r.bad {
			n++
		}
	}
	return n
}

func (s *season) content(t *nightTable, serial, version int) *delivery {
	d := &delivery{}
	bad := 0
	switch s.intn(8) {
	case 0:
		bad = s.intn(101) // percent
	case 1:
		bad = 5
	}
	var b strings.Builder
	b.WriteString(t.header)
	latin := s.intn(4) == 0
	for i := range 1 + s.intn(25) {
		id, n := serial*1000+i, version*1000+i
		item, count := fmt.Sprintf("v%d", version), fmt.Sprint(n)
		r := nightRow{key: fmt.Sprint(id), value: item + "/" + count}
		if r.bad = s.intn(100) < bad; r.bad && latin && t.header == "id,item,n\n" {
			item = "caf\xe9"
		} else if r.bad {
			count = "x" + count
		}
		switch t.name {
		case "visits":
			fmt.Fprintf(&b, "%d,%s\n", id, count)
			r.value = "/" + count
		case "journal":
			shop := []string{"east", "west"}[id%2]
			fmt.Fprintf(&b, "%s,%d,%s\n", shop, id, count)
			r.value = shop + "/" + count
		default:
			fmt.Fprintf(&b, "%d,%s,%s\n", id, item, count)
		}
		d.rows = append(d.rows, r)
	}
	d.body = []byte(b.String())
	if d.rejects()*10 > len(d.rows) {
		d.flaw = errorsy
	}
	if s.intn(10) == 0 && !latin { // UTF-16, with a byte order mark
		d.body = wide(b.String())
	}
	return d
}

func wide(text string) []byte {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(text)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return b
}

func packed(body []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(body) // writing to memory cannot fail
	_ = w.Close()
	return b.Bytes()
}

func (s *season) put(t *nightTable, d *delivery, at time.Time) {
	d.changed, d.arrived = at, s.night
	s.delivered++
	s.says("%s: %s %q changed %s, %d rows, %d bad", map[bool]string{true: "replaced",
		false: "delivered"}[t.files[d.name] != nil], filepath.Base(d.name), d.flaw, at, len(d.rows), d.rejects())
	t.files[d.name] = d
	must(s.t, os.WriteFile(d.name, d.body, 0o600))
	must(s.t, os.Chtimes(d.name, at, at))
}

func (s *season) withdraw(t *nightTable, d *delivery) {
	s.says("withdrawn: %s", filepath.Base(d.name))
	delete(t.files, d.name)
	must(s.t, os.Remove(d.name))
}

// fresh returns a new file. The series of names has gaps. Some files are late: their names precede those of others.
func (s *season) fresh(t *nightTable) *delivery {
	t.serial += 1 + s.intn(3)
	serial := t.serial
	d := s.content(t, serial, 1)
	d.name = filepath.Join(s.in, fmt.Sprintf("%s-%c%05d.csv", t.name, 'a'+rune(s.intn(3)), serial))
	if s.intn(4) == 0 {
		d.name, d.body = d.name+".gz", packed(d.body)
	}
	return d
}

func (s *season) deliver(t *nightTable) {
	now := s.world
	for range s.intn(3) {
		s.put(t, s.fresh(t), now.Add(-time.Duration(s.intn(300))*time.Minute))
	}
	if s.night == 0 {
		for range 2 {
			d := s.fresh(t)
			for d.flaw != sound || d.rejects() > 0 {
				d = s.fresh(t)
			}
			s.put(t, d, now.Add(-time.Hour))
		}
		for _, d := range t.files {
			if d.flaw != sound {
				s.withdraw(t, d)
			}
		}
		return
	}
	if s.intn(3) == 0 {
		s.mishap(t, now)
	}
}

func (s *season) mishap(t *nightTable, now time.Time) {
	names := slices.Sorted(maps.Keys(t.files))
	if len(names) == 0 {
		return
	}
	old := t.files[names[s.intn(len(names))]]
	settled := !t.once || !s.unclean // inputs of an unfinished load must not change
	switch s.intn(9) {
	case 8: // a bad file is corrected in a file of another name
		if old.flaw != errorsy || t.once || t.bad[old.name].body != string(old.body) ||
			t.bad[old.name].changed != old.changed {
			return
		}
		d := s.fresh(t)
		s.replace(t, &delivery{name: d.name, rows: old.rows}, now)
	case 0: // cut
		d := s.fresh(t)
		if !strings.HasSuffix(d.name, ".gz") {
			d.name, d.body = d.name+".gz", packed(d.body)
		}
		d.before, d.whole, d.flaw = d.body, d.rows, cut
		d.body = d.body[:12+s.intn(len(d.body)-12)]
		s.put(t, d, now.Add(-20*time.Minute))
	case 1: // other columns
		d := s.fresh(t)
		d.flaw, d.name = columns, strings.TrimSuffix(d.name, ".gz")
		text := strings.Replace(t.header, "n\n", "m\n", 1)
		for _, r := range d.rows {
			text += r.key + strings.Repeat(",1", strings.Count(text[:strings.Index(text, "\n")], ",")) + "\n"
		}
		d.body, d.rows = []byte(text), nil // no row is sent
		s.put(t, d, now.Add(-20*time.Minute))
	case 2: // empty
		d := s.fresh(t)
		d.flaw, d.name, d.body, d.rows = blank, strings.TrimSuffix(d.name, ".gz"), nil, nil
		s.put(t, d, now.Add(-20*time.Minute))
	case 3: // replaced by a corrected or changed version
		if !settled {
			return
		}
		s.replace(t, old, now)
	case 4: // withdrawn
		if settled {
			s.withdraw(t, old)
		}
	case 5: // touched
		s.says("touched: %s", filepath.Base(old.name))
		old.changed = now.Add(-15 * time.Minute)
		must(s.t, os.Chtimes(old.name, old.changed, old.changed))
	case 6: // delivered again under another name
		d := *old
		d.name = filepath.Join(s.in, t.name+"-"+string('a'+rune(s.intn(3)))+"again"+
			fmt.Sprint(s.night)+filepath.Ext(strings.TrimSuffix(old.name, ".gz"))+map[bool]string{
			true: ".gz"}[strings.HasSuffix(old.name, ".gz")])
		if t.files[d.name] == nil {
			s.put(t, &d, now.Add(-20*time.Minute))
		}
	default: // written just now
		s.put(t, s.fresh(t), now.Add(-time.Minute))
	}
}

func (s *season) replace(t *nightTable, old *delivery, now time.Time) {
	d := &delivery{name: old.name}
	switch {
	case old.flaw == cut && s.intn(3) > 0:
		d.body, d.rows = old.before, old.whole
	default:
		var serial int
		if len(old.rows) > 0 && !t.once { // added rows must have new keys, or their values would be sums
			must(s.t, conformance.ErrorOf(fmt.Sscan(old.rows[0].key, &serial)))
			serial /= 1000
		} else {
			t.serial++
			serial = t.serial
		}
		n := s.content(t, serial, 2+s.night)
		d.body, d.rows, d.flaw = n.body, n.rows, n.flaw
		if strings.HasSuffix(d.name, ".gz") {
			d.body = packed(d.body)
		}
	}
	if d.rejects()*10 > len(d.rows) {
		d.flaw = errorsy
	}
	s.put(t, d, now.Add(-20*time.Minute))
}

// fate describes what happens to a pod. By default nothing happens.
type fate struct {
	dies    int           // number of the request at which it dies; 0 means none
	after   bool          // that request is applied, and its response is lost
	within  time.Duration // time after which it dies; 0 means never
	stopped time.Duration // time after which it gets SIGTERM; 0 means never
	fails   int           // number of the first request that cannot reach the service; 0 means none
	stalls  int           // number of a late request at which the pod sleeps longer than its lease; 0 means none
}

var errNoPower = errors.New("the pod is dead")

// pod is a process that runs the command, with its connection to the service, its signals and its death.
type pod struct {
	season      *season
	fate        fate
	service     http.RoundTripper
	interrupts  *interrupts
	requests    atomic.Int64
	dying, dead atomic.Bool
	still       atomic.Pointer[time.Time] // end of its pause
	unplug      string                    // name of the state on its machine, if that is another machine

	quiet, json bool // flags for its output
	code        int
	out, said   string
}

func (s *season) newPod(f fate) *pod {
	p := &pod{season: s, fate: f, service: s.engine.SameMemory()}
	hard, stop := context.WithCancelCause(context.WithValue(context.Background(), podOf{}, p))
	drain, stopGently := context.WithCancelCause(hard)
	p.interrupts = &interrupts{drain: drain, hard: hard, stopGently: stopGently, stop: stop, gentle: make(chan bool, 1)}
	return p
}

// podOf is the key of the pod in the context of a command that runs in it.
type podOf struct{}

// run runs the command in the pod to its end. If the pod dies, the disk has the state of that moment.
func (p *pod) run(args ...string) *pod {
	for after, what := range map[time.Duration]func(){p.fate.within: p.die, p.fate.stopped: p.term} {
		if after > 0 {
			defer time.AfterFunc(after, what).Stop()
		}
	}
	var out, said bytes.Buffer
	if p.quiet {
		args = append(args, "--quiet")
	}
	in := &invocation{args: args, interrupts: p.interrupts, show: newDisplay(&said)}
	if p.json {
		in.show.logJSON(args[0])
	}
	checked := &checkedOutput{Writer: &out}
	app := newApp(checked, in)
	args, err := flagsFirst(app, append([]string{"tsimport"}, args...))
	if err == nil {
		err = app.RunContext(p.interrupts.hard, args)
	}
	p.code = exitCode(in.show, checked.end(err), checked.silent(in.show))
	p.interrupts.stop(nil)
	time.Sleep(time.Millisecond) // for a death at this moment
	if p.dead.Load() && p.unplug == "" {
		p.season.restore()
	}
	p.out, p.said = out.String(), said.String()
	return p
}

func (p *pod) term() {
	cause := &pipeline.Interrupted{Signal: "terminated", ExitCode: 143}
	p.interrupts.stopGently(cause)
	if len(p.interrupts.gentle) == 0 {
		p.interrupts.stop(cause)
	}
}

// die ends the pod between any two of its actions: the disk is copied while all its goroutines wait.
func (p *pod) die() {
	if p.interrupts.hard.Err() != nil || !p.dying.CompareAndSwap(false, true) {
		return
	}
	synctest.Wait()
	if p.unplug == "" {
		p.season.snapshot()
	} else {
		must(p.season.t, os.Remove(p.unplug)) // other machines do not see its disk
	}
	p.dead.Store(true)
	p.interrupts.stop(errNoPower)
}

func (p *pod) SameMemory() bool { return true }

func (p *pod) RoundTrip(r *http.Request) (*http.Response, error) {
	refuse := func(err error) (*http.Response, error) {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	select { // the duration of a request
	case <-time.After(5 * time.Millisecond):
	case <-r.Context().Done():
		return refuse(context.Cause(r.Context()))
	}
	n := int(p.requests.Add(1))
	if n == p.fate.stalls {
		until := time.Now().Add(90 * time.Second)
		p.still.Store(&until)
		// A paused process does not use its state.
		must(p.season.t, errors.Join(os.Rename(p.unplug, p.unplug+".off"), os.WriteFile(p.unplug, nil, 0o600)))
		time.AfterFunc(time.Until(until), func() {
			must(p.season.t, errors.Join(os.RemoveAll(p.unplug), os.Rename(p.unplug+".off", p.unplug)))
		})
	}
	if until := p.still.Load(); until != nil {
		time.Sleep(time.Until(*until))
	}
	if n == p.fate.dies && !p.fate.after {
		p.die()
	}
	if p.dead.Load() {
		return refuse(errNoPower)
	}
	if p.season.down || p.fate.fails > 0 && n >= p.fate.fails {
		return refuse(&net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)})
	}
	a, err := p.service.RoundTrip(r)
	if n == p.fate.dies {
		p.die()
	}
	if p.dead.Load() && err == nil {
		_ = a.Body.Close()
		return nil, errNoPower
	}
	return a, err
}

func (s *season) snapshot() {
	must(s.t, os.RemoveAll(s.disk+".then"))
	must(s.t, copyTree(s.disk+".then", s.disk))
}

func (s *season) restore() {
	must(s.t, os.Chdir(filepath.Dir(s.disk)))
	must(s.t, os.RemoveAll(s.disk))
	must(s.t, os.Rename(s.disk+".then", s.disk))
	must(s.t, os.Chdir(s.machine))
}

// copyTree copies a folder and preserves hard links.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(name string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(from, name)
		at := filepath.Join(to, rel)
		info, err := e.Info()
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.MkdirAll(at, info.Mode().Perm())
		}
		content, err := os.ReadFile(name)
		return errors.Join(err, os.WriteFile(at, content, info.Mode().Perm()),
			os.Chtimes(at, info.ModTime(), info.ModTime()))
	})
}
