package reserve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"

	"tsimport/engine/faults"
	"tsimport/engine/server"
	"tsimport/internal/table"
	"tsimport/internal/tablestore/client"
)

// world is an embedded service with a clock of its own and a table t that reserves 100 write units.
type world struct {
	t      *testing.T
	now    time.Time
	target client.Target
	admin  *client.Admin
	note   []byte // of the register
	said   []string
	waited time.Duration
	fault  func(r faults.Request) faults.Fault // of changes of tables
	kill   func(step string) bool              // a process ends at that step
}

// long is longer than the service wants between two changes. The engine's clock may differ from ours by 15 minutes.
const long = 125 * time.Second

var errKilled = errors.New("killed")

func newWorld(t *testing.T) *world {
	w := &world{t: t, now: time.Now().Add(-13 * time.Minute).Truncate(time.Second)}
	plan := &faults.Plan{Only: func(op string) bool { return op == "UpdateTable" }, Decide: func(r faults.Request) faults.Fault {
		if w.fault == nil {
			return faults.Fault{}
		}
		return w.fault(r)
	}}
	s, err := server.Open("", server.Options{InMemory: true, Faults: plan, Now: func() time.Time { return w.now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	w.target = client.Target{
		Endpoint: "http://embedded", Instance: server.DefaultInstance, Transport: s.Transport(),
		Credentials: &common.DefaultCredentialsProvider{AccessKeyID: server.DefaultAccessKeyID, AccessKeySecret: server.DefaultAccessKeySecret},
	}
	w.admin = w.connect(context.Background())
	w.create()
	return w
}

func (w *world) connect(ctx context.Context) *client.Admin {
	w.t.Helper()
	sdk, err := client.New(ctx, w.target, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	connection, err := client.Connect(ctx, w.target, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return &client.Admin{Client: sdk, Context: ctx, Connection: connection, RetryFor: 20 * time.Millisecond}
}

func (w *world) create() {
	w.t.Helper()
	if err := w.admin.Create("t", []table.KeyColumn{{Name: "id", Type: table.String}}, table.Definition{TimeToLive: -1, MaxVersions: 1, ReservedRead: 7, ReservedWrite: 100}); err != nil {
		w.t.Fatal(err)
	}
}

// set is what somebody else does, long after all else.
func (w *world) set(units int) {
	w.t.Helper()
	w.now = w.now.Add(long)
	if err := w.admin.Update("t", client.Change{ReservedWrite: &units}); err != nil {
		w.t.Fatal(err)
	}
	w.now = w.now.Add(long)
}

func (w *world) units() int {
	w.t.Helper()
	t, err := w.admin.Describe("t")
	if err != nil {
		w.t.Fatal(err)
	}
	if t.ReservedRead != 7 {
		w.t.Errorf("reserved read throughput is %d", t.ReservedRead)
	}
	return t.ReservedWrite
}

func (w *world) died(step string) bool { return w.kill != nil && w.kill(step) }

func (w *world) Read(context.Context) (*Note, error) {
	if w.note == nil {
		return nil, nil
	}
	return ReadNote(w.note)
}

func (w *world) Write(_ context.Context, n *Note) (err error) {
	if w.died("before the note") {
		return errKilled
	}
	if w.note, err = json.Marshal(n); err == nil && w.died("after the note") {
		err = errKilled
	}
	return err
}

func (w *world) Remove(context.Context, *Note) error {
	if w.died("before the note is removed") {
		return errKilled
	}
	w.note = nil
	return nil
}

// raise is that of a process.
func (w *world) raise(units int) *Raise {
	return &Raise{Admin: w.admin, Table: "t", Units: units, Register: w, Run: "run", Say: func(line string) { w.said = append(w.said, line) },
		Clock: Clock{Now: func() time.Time { return w.now }, Wait: func(ctx context.Context, d time.Duration) error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			w.now, w.waited = w.now.Add(d), w.waited+d
			return nil
		}}}
}

func (w *world) heard(text string) bool { return strings.Contains(strings.Join(w.said, "\n"), text) }

func (w *world) wants(units int, noted bool) {
	w.t.Helper()
	if got := w.units(); got != units || (w.note != nil) != noted {
		w.t.Errorf("%d units, want %d; noted %v, want %v; said %q", got, units, w.note != nil, noted, w.said)
	}
}

func TestThroughputIsRaisedAndRestoredWithinTheServicesInterval(t *testing.T) {
	w := newWorld(t)
	r := w.raise(5000)
	if err := r.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wants(5000, true)
	if w.waited != 0 {
		t.Errorf("waited %v to raise what was not changed for long", w.waited)
	}
	w.now = w.now.Add(30 * time.Second) // of a short load
	if err := r.End(t.Context(), t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wants(100, false)
	if w.waited < 90*time.Second || w.waited > 92*time.Second || !w.heard("waiting 1m31s until the throughput of table t may be restored") {
		t.Errorf("waited %v; %q", w.waited, w.said)
	}
	if err := r.End(t.Context(), t.Context()); err != nil { // a second time does nothing
		t.Fatal(err)
	}
}

func TestARaiseThatComesTooSoonIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	units := 200
	if err := w.admin.Update("t", client.Change{ReservedWrite: &units}); err != nil {
		t.Fatal(err)
	}
	r := w.raise(5000)
	if err := r.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wants(5000, true)
	if w.waited < 120*time.Second || !w.heard("may be raised") {
		t.Errorf("waited %v; %q", w.waited, w.said)
	}
	if err := r.End(t.Context(), t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wants(200, false)
}

func TestWhoDoesNotWaitIsToldWhatIsLeft(t *testing.T) {
	w := newWorld(t)
	r := w.raise(5000)
	if err := r.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	interrupted, stop := context.WithCancel(t.Context())
	stop()
	var left *NotRestored
	if err := r.End(t.Context(), interrupted); !errors.As(err, &left) || left.Is != 5000 || left.Was != 100 || !errors.Is(err, client.ErrTooFrequent) {
		t.Fatalf("%v", err)
	}
	w.wants(5000, true)
	w.now = w.now.Add(long)
	if err := w.raise(0).End(t.Context(), t.Context()); err != nil { // another process
		t.Fatal(err)
	}
	w.wants(100, false)
}

func TestWhatIsEnoughIsNotRaised(t *testing.T) {
	for _, units := range []int{50, 100} {
		w := newWorld(t)
		r := w.raise(units)
		if err := r.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := r.End(t.Context(), t.Context()); err != nil {
			t.Fatal(err)
		}
		w.wants(100, false)
		if !w.heard("raises nothing") {
			t.Errorf("%q", w.said)
		}
	}
}

func TestWhatSomebodyElseHasSetIsNotOverwritten(t *testing.T) {
	for _, restart := range []bool{false, true} {
		w := newWorld(t)
		r := w.raise(5000)
		if err := r.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.set(777)
		if restart {
			r = w.raise(0)
		}
		if err := r.End(t.Context(), t.Context()); err != nil {
			t.Fatal(err)
		}
		w.wants(777, false)
		if !w.heard("somebody else has set its reserved write throughput to 777 units since a run raised it from 100; it stays") {
			t.Errorf("%q", w.said)
		}
	}
	// A later run raises what somebody else has set, and restores that.
	w := newWorld(t)
	if err := w.raise(5000).Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.set(777)
	r := w.raise(6000)
	if err := r.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wants(6000, true)
	w.now = w.now.Add(long)
	if err := r.End(t.Context(), t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wants(777, false)
}

func TestATableThatWasReplacedOrDroppedIsLeftAlone(t *testing.T) {
	for _, again := range []bool{false, true} {
		w := newWorld(t)
		r := w.raise(5000)
		if err := r.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := w.admin.Drop("t"); err != nil {
			t.Fatal(err)
		}
		if again {
			w.now = w.now.Add(long)
			w.create()
			w.set(5000)
		}
		if err := r.End(t.Context(), t.Context()); err != nil {
			t.Fatal(err)
		}
		if w.note != nil {
			t.Error("the note stays")
		}
		if again {
			w.wants(5000, false)
		}
	}
}

func TestARefusedRestoreLeavesTheNoteForTheNextRun(t *testing.T) {
	w := newWorld(t)
	r := w.raise(5000)
	if err := r.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.fault = func(faults.Request) faults.Fault {
		return faults.Fault{Action: faults.Refuse, Code: "OTSNoPermissionAccess"}
	}
	w.now = w.now.Add(long)
	var left *NotRestored
	if err := r.End(t.Context(), t.Context()); !errors.As(err, &left) || !client.Refused(err) || !strings.Contains(err.Error(), "is still 5000 units, and was 100 before") {
		t.Fatalf("%v", err)
	}
	w.wants(5000, true)
	w.fault = nil
	next := w.raise(5000)
	if err := next.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := next.End(t.Context(), t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wants(100, false)
}

func TestARefusedRaiseLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.fault = func(faults.Request) faults.Fault {
		return faults.Fault{Action: faults.Refuse, Code: "OTSForbiddenUpdateCapacityUnit"}
	}
	r := w.raise(5000)
	if err := r.Begin(t.Context()); err == nil || !strings.Contains(err.Error(), "OTSForbiddenUpdateCapacityUnit") {
		t.Fatalf("%v", err)
	}
	if err := r.End(t.Context(), t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wants(100, false)
}

// TestAnAnswerThatIsLostChangesNothing loses each answer to a change, before and after it is made, for a while or as long as the
// process is patient.
func TestAnAnswerThatIsLostChangesNothing(t *testing.T) {
	for _, action := range []faults.Action{faults.DropBefore, faults.DropAfter, faults.AnswerErrorAfter} {
		for _, lost := range []int{1, 1000} {
			for _, at := range []string{"raise", "restore"} {
				t.Run(fmt.Sprintf("%v, %d at the %s", action, lost, at), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t)
					n := 0
					lose := func(faults.Request) faults.Fault {
						if n++; n > lost {
							return faults.Fault{}
						}
						return faults.Fault{Action: action, Code: "OTSTimeout"}
					}
					r := w.raise(5000)
					if at == "raise" {
						w.fault = lose
					}
					beginErr := r.Begin(t.Context())
					if at == "restore" {
						w.fault, n = lose, 0
					}
					w.now = w.now.Add(long)
					endErr := r.End(t.Context(), t.Context())
					if lost == 1 && (beginErr != nil || endErr != nil) {
						t.Errorf("%v, %v", beginErr, endErr)
					}
					if w.units() != 100 && w.note == nil {
						t.Errorf("%d units, and no note: %v, %v", w.units(), beginErr, endErr)
					}
					w.fault, w.now = nil, w.now.Add(long)
					if err := w.raise(0).End(t.Context(), t.Context()); err != nil {
						t.Errorf("the next run: %v", err)
					}
					w.wants(100, false)
				})
			}
		}
	}
}

// TestAProcessThatIsKilledAnywhereIsFinishedByTheNext ends a process at each of its steps; the next one, with --raise-write or without,
// leaves the table as it was.
func TestAProcessThatIsKilledAnywhereIsFinishedByTheNext(t *testing.T) {
	for _, units := range []int{0, 5000, 8000, 50} {
		for _, early := range []time.Duration{0, long} {
			for at := 1; ; at++ {
				w := newWorld(t)
				ctx, die := context.WithCancel(t.Context())
				steps := 0
				step := func() bool {
					if steps++; steps == at {
						die()
					}
					return steps >= at
				}
				w.kill = func(string) bool { return step() }
				w.fault = func(faults.Request) faults.Fault { // before the service has seen it, or after
					if step() {
						return faults.Fault{Action: faults.DropBefore}
					}
					if step() {
						return faults.Fault{Action: faults.DropAfter}
					}
					return faults.Fault{}
				}
				first := w.raise(5000)
				first.Admin = w.connect(ctx)
				err := first.Begin(ctx)
				if err == nil {
					w.now = w.now.Add(long)
					err = first.End(ctx, ctx)
				}
				w.kill, w.fault = nil, nil
				finished := steps < at
				w.now = w.now.Add(early)
				next := w.raise(units)
				if err := next.Begin(t.Context()); err != nil {
					t.Fatalf("killed at step %d, then %d units: %v", at, units, err)
				}
				if units > 100 {
					w.wants(units, true)
				}
				if err := next.End(t.Context(), t.Context()); err != nil {
					t.Fatalf("killed at step %d, then %d units: %v", at, units, err)
				}
				if w.units() != 100 || w.note != nil {
					t.Fatalf("killed at step %d (%v), then %d units: %d units, note %s, said %q", at, err, units, w.units(), w.note, w.said)
				}
				die()
				if finished {
					if at < 5 {
						t.Errorf("a process has only %d steps", at)
					}
					break
				}
			}
		}
	}
}

func TestANoteOfANewerVersionIsRefused(t *testing.T) {
	w := newWorld(t)
	w.note = []byte(`{"version": 2}`)
	for _, r := range []*Raise{w.raise(5000), w.raise(0)} {
		if err := r.Begin(t.Context()); err == nil || !strings.Contains(err.Error(), "newer version") {
			t.Errorf("%v", err)
		}
	}
	w.wants(100, true)
}

func TestWhoHasLostItsLeaseChangesNothing(t *testing.T) {
	w := newWorld(t)
	r := w.raise(5000)
	if err := r.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.May = func() error { return errKilled }
	w.now = w.now.Add(long)
	if err := r.End(t.Context(), t.Context()); !errors.Is(err, errKilled) {
		t.Errorf("%v", err)
	}
	w.wants(5000, true)
}
