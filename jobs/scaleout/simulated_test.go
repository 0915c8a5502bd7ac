package scaleout

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	gocmp "github.com/google/go-cmp/cmp"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/objectstore/storetest"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/lanes"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/source/sourcetest"
)

var (
	seeds     = flag.Int("scaleout-seeds", 2, "how many random jobs are run")
	firstSeed = flag.Uint64("scaleout-first", 1, "the first of them")
)

// few returns the number of seeds to run: n or, with -short, at most one, because the race detector is slow.
func few(n int) int {
	if testing.Short() {
		return min(n, 1)
	}
	return n
}

func eachSeed(t *testing.T, job func(t *testing.T, seed uint64)) {
	t.Parallel()
	for i := range few(*seeds) {
		seed := *firstSeed + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { job(t, seed) })
		})
	}
}

// process is a process of the job. Its acts may be slow, happen after a long pause, or never happen.
type process struct {
	w    *world
	name string
	ctx  context.Context
	kill context.CancelCauseFunc

	mu     sync.Mutex
	rand   *rand.Rand
	left   int           // acts until it dies; negative means never
	frozen time.Time     // end of the current pause
	pauses float64       // probability, per act, of a pause longer than a lease
	faults float64       // probability, per act, that the store fails before or after the act takes effect
	slow   time.Duration // maximum duration of an act; 0 means 30 ms
	ahead  time.Duration // lead of its clock
	denied bool          // the service refuses its keys
	wire   func(r *http.Request) (late time.Duration, dies bool)
	wrong  func(verb, name string, done bool) error // errors of acts of the store; see wrongWith
}

var (
	errDied  = errors.New("the process has died")
	errStore = errors.New("the store is full, or does not answer")
)

// fails returns an error if the store fails by chance.
func (p *process) fails() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rand.Float64() < p.faults {
		return errStore
	}
	return nil
}

func (p *process) goesWrong(wrong func(verb, name string, done bool) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrong = wrong
}

// wrongWith returns the error that a test has set for an act. done tells whether the act has taken effect.
func (p *process) wrongWith(verb, name string, done bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wrong == nil {
		return nil
	}
	return p.wrong(verb, name, done)
}

func (p *process) do(verb, name string, do func() error) error {
	if err := errors.Join(p.act(), p.fails(), p.wrongWith(verb, name, false)); err != nil {
		return err
	}
	err := do()
	if err == nil && verb != "get" && verb != "list" {
		err = errors.Join(p.act(), p.fails())
	}
	if err != nil {
		return err
	}
	return p.wrongWith(verb, name, true)
}

// act is called before each act of the process that others can observe.
func (p *process) act() error {
	p.mu.Lock()
	if p.left == 0 {
		p.mu.Unlock()
		p.kill(errDied)
		return errDied
	}
	p.left--
	if p.rand.Float64() < p.pauses {
		p.frozen = time.Now().Add(time.Duration(20+p.rand.IntN(100)) * time.Second)
	}
	slow := time.Duration(p.rand.Int64N(int64(cmp.Or(p.slow, 30*time.Millisecond))))
	until := p.frozen
	p.mu.Unlock()
	time.Sleep(max(slow, time.Until(until)))
	if p.ctx.Err() != nil {
		return errDied
	}
	return nil
}

func (p *process) String() string { return "memory" }

func (p *process) PutAbsent(ctx context.Context, name string, body []byte) error {
	return p.do("put", name, func() error { return p.w.store.As(p.name).PutAbsent(ctx, name, body) })
}

func (p *process) Put(ctx context.Context, name string, body []byte) error {
	return p.do("put", name, func() error { return p.w.store.As(p.name).Put(ctx, name, body) })
}

func (p *process) PutFile(ctx context.Context, name, file string) error {
	return p.do("put", name, func() error { return p.w.store.As(p.name).PutFile(ctx, name, file) })
}

func (p *process) Get(ctx context.Context, name string) (body []byte, err error) {
	err = p.do("get", name, func() (err error) { body, err = p.w.store.Get(ctx, name); return err })
	return body, err
}

func (p *process) GetRange(ctx context.Context, name string, from, n int64) (body []byte, err error) {
	err = p.do("get", name, func() (err error) { body, err = p.w.store.GetRange(ctx, name, from, n); return err })
	return body, err
}

func (p *process) List(ctx context.Context, prefix string) (names []string, err error) {
	err = p.do("list", prefix, func() (err error) { names, err = p.w.store.As(p.name).List(ctx, prefix); return err })
	return names, err
}

func (p *process) Delete(ctx context.Context, name string) error {
	return p.do("delete", name, func() error { return p.w.store.Delete(ctx, name) })
}

// RoundTrip may send a request long after the check that permitted it. Such a request is applied without an answer.
func (p *process) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if err := p.act(); err != nil {
		return nil, err
	}
	if p.denied && r.URL.Path == "/BatchWriteRow" {
		return answerOf(r, http.StatusForbidden, "OTSAuthFailed", "The AccessKeyID is disabled."), nil
	}
	if r.URL.Path == "/BatchWriteRow" && bytes.Contains(body, []byte(refusedText)) {
		return answerOf(r, http.StatusBadRequest, "OTSParameterInvalid", "A row is bad."), nil
	}
	again := r.Clone(context.WithoutCancel(r.Context()))
	again.Body = io.NopCloser(strings.NewReader(string(body)))
	if p.wire != nil {
		if late, dies := p.wire(r); dies { // the process dies after sending the request, which arrives late
			p.kill(errDied)
			p.w.late.Go(func() {
				time.Sleep(late)
				if answer, err := p.w.server.Transport().RoundTrip(again); err == nil {
					_ = answer.Body.Close()
				}
			})
			return nil, errDied
		}
	}
	answer, err := p.w.server.Transport().RoundTrip(again)
	if actErr := p.act(); actErr != nil {
		return nil, actErr
	}
	if r.Context().Err() != nil {
		return nil, r.Context().Err()
	}
	return answer, err
}

type world struct {
	t      *testing.T
	dir    string
	store  *storetest.Memory
	server *server.Server
	inputs []string
	source *sourcetest.Keyed // used instead of inputs
	mode   table.Mode
	order  plan.Order
	verify bool
	tune   func(*pipeline.Config)
	late   sync.WaitGroup // late requests of dead processes

	want     map[string]string // expected text of each key
	rejects  []string          // texts of the rejected records, in order
	good     int
	startsAt time.Time
}

func newWorld(t *testing.T) *world {
	s := conformance.Try(server.Open("", server.Options{InMemory: true})).Must(t)
	t.Cleanup(func() { conformance.Equal(t, s.Close(), nil, "error") })
	return &world{t: t, dir: t.TempDir(), store: storetest.NewMemory(jobdir.ErrExists), server: s,
		want: map[string]string{}, startsAt: time.Now()}
}

func (w *world) file(name, text string) string {
	path := filepath.Join(w.dir, name)
	must(w.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// makeInputs makes files with repeated keys, line ends inside quotes, and some bad records.
func (w *world) makeInputs(rnd *rand.Rand) {
	keys := 1 + rnd.IntN(400)
	for n := range 1 + rnd.IntN(3) {
		var text strings.Builder
		text.WriteString("id,what\n")
		for i := range rnd.IntN(600) {
			key := fmt.Sprintf("k%04d", rnd.IntN(keys)*9999/keys)
			if rnd.IntN(3) == 0 {
				key = "k5000" // a hot key
			}
			if w.order == plan.OrderNone { // keys must be unique, because any row of a key may win
				key = fmt.Sprintf("k%04d", len(w.want)*7919%9999)
			}
			what := fmt.Sprintf("file %d, record %d", n, i)
			switch rnd.IntN(40) {
			case 0:
				line := fmt.Sprintf("bad-%d-%d\n", n, i)
				text.WriteString(line)
				w.rejects = append(w.rejects, line)
				continue
			case 1, 2, 3:
				what += " \"\nid,what\nk1,\"\""
			}
			fmt.Fprintf(&text, "%s,\"%s\"\n", key, strings.ReplaceAll(what, `"`, `""`))
			w.want[key] = what
			w.good++
		}
		w.inputs = append(w.inputs, w.file(fmt.Sprintf("in-%d.csv", n), text.String()))
	}
}

func (w *world) config(transport http.RoundTripper) pipeline.Config {
	cfg := pipeline.Config{
		Inputs: w.inputs,
		Target: plan.Target{
			Client: client.Target{Endpoint: "http://embedded", Instance: server.DefaultInstance, Transport: transport,
				RequestTimeout: 10 * time.Second,
				Credentials: &common.DefaultCredentialsProvider{AccessKeyID: server.DefaultAccessKeyID,
					AccessKeySecret: server.DefaultAccessKeySecret}},
			Name: "test", Table: "t", Create: true, Key: []table.KeyColumn{{Name: "id", Type: table.String}},
			Define: table.Definition{TimeToLive: -1, MaxVersions: 1},
		},
		Read:    plan.Read{Parsers: 2},
		Columns: plan.Columns{Types: map[string]plan.Type{}},
		Write:   pipeline.Write{Mode: w.mode, Order: w.order},
		Lanes:   lanes.Config{Concurrency: 4, BatchRows: 20},
		Limits:  pipeline.Limits{MaxErrors: ledger.MaxErrors{Rows: -1}, Memory: 64 << 20, TempDir: w.dir},
	}
	if w.source != nil {
		cfg.Inputs, cfg.Read.Sources = []string{w.source.Name}, w.source
		cfg.Target.Key = []table.KeyColumn{{Name: "id", Type: table.Integer}}
	}
	cfg.Compared = w.verify
	if w.tune != nil {
		w.tune(&cfg)
	}
	return cfg
}

// start starts a process that dies after a number of acts, or never if it is negative.
func (w *world) start(name string, seed uint64, acts int, pauses float64) *process {
	p := &process{w: w, name: name, rand: rand.New(rand.NewPCG(seed, 7)), left: acts, pauses: pauses}
	p.ctx, p.kill = context.WithCancelCause(w.t.Context())
	return p
}

func (p *process) open() (*Job, error) {
	return Open(p.ctx, p, Options{Load: p.w.config(p), Program: "test", Owner: p.name,
		Clock: func() time.Duration { return p.ahead + time.Since(p.w.startsAt) }})
}

// run opens the job in the process, calls do, and closes it.
func (p *process) run(do func(ctx context.Context, j *Job) error) error {
	j, err := p.open()
	if err != nil {
		return err
	}
	return errors.Join(do(p.ctx, j), j.Close())
}

func (w *world) sdk() *tablestore.TableStoreClient {
	return conformance.Try(client.New(w.t.Context(), w.config(w.server.Transport()).Target.Client, nil)).Must(w.t)
}

// tries is like run, but permits do to fail if another attempt can succeed.
func (p *process) tries(do func(ctx context.Context, j *Job) error) {
	err := p.run(do)
	conformance.True(p.w.t, passing(err), "%s: %v", p.name, err)
}

func (w *world) rows() map[string]string {
	rows, key := map[string]string{}, w.config(nil).Target.Key
	must(w.t, scan.Table(w.t.Context(), w.sdk(), "t", key, scan.Options{}, func(r *scan.Row) error {
		rows[fmt.Sprint(r.PrimaryKey.PrimaryKeys[0].Value)] = r.Columns[0].Value.(string)
		return nil
	}))
	return rows
}

// check compares the ledger and the table with the inputs.
func (w *world) check(s *Summary) {
	w.t.Helper()
	conformance.True(w.t, s.Read == int64(w.good+len(w.rejects)) && s.Written == int64(len(w.want)) &&
		s.Superseded == int64(w.good-len(w.want)) && s.Rejected == int64(len(w.rejects)),
		"%d read, %d written, %d superseded, %d rejected; want %d, %d, %d, %d", s.Read, s.Written, s.Superseded, s.Rejected,
		w.good+len(w.rejects), len(w.want), w.good-len(w.want), len(w.rejects))
	if c := s.Compared; w.verify != (c != nil) || c != nil &&
		(c.Compared != s.Written || c.Missing+c.Different+c.Surplus > 0 || s.ExitCode == exitcode.Differences) {
		w.t.Errorf("compared: %+v", c)
	}
	p := conformance.Try(ReadPlan(w.t.Context(), w.store)).Must(w.t)
	conformance.True(w.t, s.Splits == len(p.Splits) && s.Shards == len(p.Shards) && s.Processes >= 1 &&
		(s.Attempts > 0) == (s.Requests > 0) &&
		s.RowsSent >= s.Written && s.WriteCU >= s.Written && s.Requests >= (s.Written+19)/20 && s.Retried >= 0 &&
		(s.RunBytes > 0) == (s.Shards > 0 && w.good > 0) && (s.ReducedBytes > 0) == (s.RunBytes > 0 && !p.Unique) &&
		s.Seconds >= s.ReadSeconds && s.Consistent == nil, "the work of %+v", s)
	diff := gocmp.Diff(w.want, w.rows())
	conformance.True(w.t, diff == "", "the table (-want +got)\n%s", diff)
	want := ""
	if len(w.rejects) > 0 {
		want = "id,what\n" + strings.Join(w.rejects, "")
	}
	page, err := w.store.Get(context.Background(), pageName)
	conformance.True(w.t, err == nil && bytes.Contains(page, []byte("Rejected")) == (len(w.rejects) > 0) &&
		bytes.Contains(page, []byte("Comparison")) == w.verify, "the page %s, %v", page, err)
	// Paused processes may still write their objects.
	got, err := w.store.Get(context.Background(), "rejects.csv")
	conformance.True(w.t, (err == nil || want == "") && string(got) == want, "rejects:\n%s\nwant\n%s", got, want)
}

// passing reports whether another attempt may succeed, for example because the process died or was too late.
func passing(err error) bool { return !errors.As(err, new(*progress.UnfitError)) }

// TestAnyOrderOfTasksLeavesTheSameTable runs processes that repeat tasks, die at any act, or pause longer than a lease.
func TestAnyOrderOfTasksLeavesTheSameTable(t *testing.T) { eachSeed(t, randomJob) }

func randomJob(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(t)
	if rnd.IntN(4) == 0 {
		w.order = plan.OrderNone
	}
	w.verify = rnd.IntN(3) == 0
	w.makeInputs(rnd)
	if w.good == 0 {
		w.inputs = append(w.inputs, w.extra())
	}
	workers, size := 1+rnd.IntN(4), int64(200+rnd.IntN(8000))
	ceiling := []float64{0, 0, 1e6}[rnd.IntN(3)]
	request := func(r *Request) { r.Workers, r.SplitSize, r.Load.Lanes.Rates.MaxRows = workers, size, ceiling }
	var processes sync.WaitGroup
	for d := range 1 + rnd.IntN(3) { // some of the drivers, which plan the load concurrently, die
		p := w.start(fmt.Sprintf("driver %d", d), rnd.Uint64(), rnd.IntN(120), 0.005)
		processes.Go(func() {
			err := w.plan(p, request)
			conformance.True(t, passing(err), "%s: %v", p.name, err)
		})
	}
	processes.Wait()
	w.planned(request)
	made := conformance.Try(ReadPlan(t.Context(), w.store)).Must(t)
	w.store.Late = time.Duration(rnd.IntN(3)) * 20 * time.Second // after planning, which refuses late listings
	t.Logf("%d inputs, %d splits, %d shards", len(made.Inputs), len(made.Splits), len(made.Shards))
	for n := range 2 + rnd.IntN(8) {
		acts := rnd.IntN(600)
		if rnd.IntN(3) == 0 {
			acts = -1
		}
		p := w.start(fmt.Sprintf("process %d", n), rnd.Uint64(), acts, []float64{0, 0.002, 0.01}[rnd.IntN(3)])
		p.slow = []time.Duration{0, 0, 0, 3 * time.Second}[rnd.IntN(4)]
		p.faults, p.ahead = []float64{0, 0, 0.003, 0.02}[rnd.IntN(4)], time.Duration(rnd.IntN(20))*time.Minute
		do := someTasks(rand.New(rand.NewPCG(rnd.Uint64(), 3)))
		processes.Go(func() { p.tries(do) })
		if rnd.IntN(2) == 0 {
			time.Sleep(time.Duration(rnd.IntN(60)) * time.Second)
		}
	}
	s := w.finish()
	processes.Wait() // stopped processes may still have sent requests
	// Abandoned requests, like pauses, may take minutes of virtual time.
	time.Sleep(10 * time.Minute)
	w.check(s)
}

func (w *world) extra() string {
	w.want["k1"], w.good = "one", 1
	return w.file("extra.csv", "id,what\nk1,one\n")
}

// someTasks returns the tasks of a worker, or any tasks in any order.
func someTasks(rnd *rand.Rand) func(context.Context, *Job) error {
	if rnd.IntN(2) == 0 {
		return workAll
	}
	return func(ctx context.Context, j *Job) (err error) {
		stages := j.stages()
		for range 1 + rnd.IntN(2*(len(j.Plan.Splits)+len(j.Plan.Shards))) {
			if what := rnd.IntN(6); what < 5 {
				st := stages[what*len(stages)/5]
				_, err = j.takeOne(ctx, st, []int{rnd.IntN(st.tasks)})
			} else {
				_, err = j.finish(ctx)
			}
			if !passing(err) {
				return err
			}
		}
		return nil
	}
}
