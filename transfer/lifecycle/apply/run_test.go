package apply

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/lifecycle"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/tabletest"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/transfer/lifecycle/archive"
	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
)

// months returns a world with a table of each class, a table of a future month, and two tables not named for a month.
func months(t *testing.T, now string, o server.Options) *world {
	w := newWorld(t, now, o)
	for _, month := range []string{"202401", "202403", "202404", "202405", "202406"} {
		w.create(month, 3, asMade)
	}
	for _, name := range []string{"c_old", "other"} {
		must(t, w.own.Create(name, []table.KeyColumn{{Name: "id", Type: table.Integer}}, asMade))
	}
	w.clock = w.clock.Add(5 * time.Minute) // new tables may then be changed
	return w
}

const others = "c_old 1/2 -1 1, other 1/2 -1 1"

func TestLookChangesNothing(t *testing.T) {
	w := months(t, "202405", server.Options{})
	before := w.tables()
	p := w.look()
	want := "c_202401 age 4 class 3 planned export; " +
		"c_202403 age 2 class 2 planned reserved.read=20 reserved.write=1 ttl=864000; " +
		"c_202404 age 1 class 2 planned reserved.read=20 reserved.write=1 ttl=864000; " +
		"c_202405 age 0 class 1 planned reserved.read=0 reserved.write=50; " +
		"c_202406 age -1 class 1 planned reserved.read=0 reserved.write=50"
	got := outline(p)
	conformance.True(t, got == want && fmt.Sprint(p.Others) == "[c_old]", "%s\nothers %v", got, p.Others)
	conformance.Equal(t, w.tables(), before, "tables now there")
	conformance.True(t, len(w.requests) == 6 && w.count("ListTable") == 1 && w.count("DescribeTable") == 5,
		"requests %v", w.requests)
	conformance.Refused(t, conformance.ErrorOf(os.Stat(w.dir)), "", "the archive was made")
	conformance.True(t, p.Items[1].Note != "" && p.Items[3].Note == "", "notes %q, %q", p.Items[1].Note, p.Items[3].Note)
}

func TestSecondRunHasNothingToDo(t *testing.T) {
	w := months(t, "202405", server.Options{})
	p := w.mustRun()
	for _, i := range p.Items {
		conformance.True(t, i.State == Done && i.Err == nil, "%s: %s, %v", i.Have.Name, i.State, i.Err)
	}
	want := "c_202401 1/2 -1 1, c_202403 20/1 864000 1, c_202404 20/1 864000 1, c_202405 0/50 -1 1, c_202406 0/50 -1 1, " +
		others
	conformance.Equal(t, w.tables(), want, "tables")
	conformance.True(t, len(w.waits) == 0 && w.count("UpdateTable") == 6 && w.count("DeleteTable") == 0, "%v", w.requests)
	w.requests = nil
	p = w.mustRun()
	for _, i := range p.Items {
		conformance.Equal(t, i.State, Unchanged, "%s", i.Have.Name)
	}
	if len(w.requests) != 6 { // one for the list, five for descriptions
		t.Errorf("requests %v", w.requests)
	}
}

func TestThroughputChangesDoNotDelayOtherTables(t *testing.T) {
	w := months(t, "202405", server.Options{})
	changed := w.clock
	if err := w.own.Reserve("c_202403", 7, 7); err != nil { // as if another process had just changed it
		t.Fatal(err)
	}
	w.clock = w.clock.Add(30 * time.Second)
	p := w.mustRun()
	for _, i := range p.Items {
		conformance.Equal(t, i.State, Done, "%s: %v", i.Have.Name, i.Err)
	}
	conformance.Equal(t, w.clock.Sub(changed), DefaultInterval+time.Second, "the change came")
	conformance.True(t, strings.HasPrefix(w.said[len(w.said)-1], "table c_202403: reserved") &&
		w.heard("waiting 1m31s until the throughput of table c_202403 may be changed (once in 2m0s); 1 tables to go"),
		"said %q", w.said)
	waiting := -1
	for i, line := range w.said { // the other tables and the export do not wait
		if strings.HasPrefix(line, "waiting") && waiting < 0 {
			waiting = i
		}
		conformance.True(t, waiting < 0 || !strings.Contains(line, "c_202404") && !strings.Contains(line, "c_202401"),
			"%q came after the first wait", line)
	}
	conformance.Equal(t, w.count("UpdateTable"), 6, "changes were sent")
}

func TestRefusedThroughputChangeIsRetried(t *testing.T) {
	w := months(t, "202405", server.Options{ThroughputInterval: 5 * time.Minute})
	must(t, w.own.Reserve("c_202405", 7, 7))
	w.pace.Interval = 40 * time.Second // shorter than the service's interval
	got := outline(w.mustRun())
	conformance.True(t, !strings.Contains(got, "failed") && !strings.Contains(got, "planned"), "%s, %q", got, w.said)
	n := w.count("UpdateTable") - 6
	conformance.True(t, n >= 3 && n < client.MaxPostponed, "%d changes were refused", n)
	conformance.Contains(t, w.tables(), "c_202405 0/50", "tables")
}

func TestNegativeIntervalDisablesWaits(t *testing.T) {
	w := months(t, "202405", server.Options{ThroughputInterval: -1})
	must(t, w.own.Reserve("c_202405", 7, 7))
	w.pace.Interval = -1
	p := w.mustRun()
	conformance.True(t, p.Items[3].State == Done && len(w.waits) == 0, "%s after %v", p.Items[3].State, w.waits)
}

func TestAlwaysRefusedTableDoesNotStopOthers(t *testing.T) {
	w := months(t, "202405", server.Options{ThroughputInterval: 1000 * time.Hour})
	must(t, w.own.Reserve("c_202404", 7, 7))
	w.pace.Interval = 20 * time.Second // the service refuses requests if the client's clock is too far from its own
	p := w.mustRun()
	for _, i := range p.Items {
		if failed := i.Have.Name == "c_202404"; failed != (i.State == Failed) || failed != (i.Err != nil) {
			t.Errorf("%s: %s, %v", i.Have.Name, i.State, i.Err)
		}
	}
	err := p.Items[2].Err
	conformance.True(t, errors.Is(err, client.ErrTooFrequent) &&
		strings.Contains(err.Error(), "refused 10 times in a row"), "%v", err)
	if !strings.Contains(w.tables(), "c_202404 7/7 864000") { // options change although the service refuses the throughput
		t.Errorf("tables %s", w.tables())
	}
}

func TestChangeWithALostResponseIsRecognized(t *testing.T) {
	w := months(t, "202405", server.Options{})
	// Unlike the engine, the service refuses a repeated change even if it changes nothing, so the engine must, too.
	w.before = func(operation string) error {
		if operation == "UpdateTable" && w.count("UpdateTable") == 3 { // the first change of throughput
			w.before = nil
			return w.own.Reserve("c_202403", 20, 2)
		}
		return nil
	}
	refused := w.count
	w.lost = func(operation string) error {
		if operation == "UpdateTable" && refused("UpdateTable") == 3 {
			w.clock = w.clock.Add(DefaultInterval)
			return w.own.Reserve("c_202403", 20, 1)
		}
		return nil
	}
	p := w.mustRun()
	conformance.True(t, p.Items[1].State == Done && w.count("UpdateTable") == 6,
		"%s, %v after %d changes; %q", p.Items[1].State, p.Items[1].Err, w.count("UpdateTable"), w.said)
}

func TestFastClockDoesNotLengthenWaits(t *testing.T) {
	w := months(t, "202405", server.Options{})
	ahead := w.clock.Add(5 * time.Minute)
	ours := w.clock
	w.clock = ahead
	must(t, w.own.Reserve("c_202405", 7, 7))
	w.clock = ours
	start := w.clock
	p := w.mustRun()
	if took := w.clock.Sub(start); p.Items[3].State != Done || took > DefaultInterval+time.Second {
		t.Errorf("%s after %v", p.Items[3].State, took)
	}
}

func TestDroppedTableDoesNotBlockOthers(t *testing.T) {
	w := months(t, "202405", server.Options{})
	p := w.look()
	for _, name := range []string{"c_202401", "c_202403"} {
		must(t, w.own.Drop(name))
	}
	must(t, p.Run(context.Background(), w.pace))
	for i, want := range []State{Failed, Failed, Done, Done, Done} {
		item := p.Items[i]
		conformance.True(t, item.State == want, "%s: %s, %v", item.Have.Name, item.State, item.Err)
	}
}

func TestTableDroppedAfterTheListingIsLeftOut(t *testing.T) {
	w := months(t, "202405", server.Options{})
	w.lost = func(operation string) error {
		if operation == "ListTable" {
			return w.own.Drop("c_202403")
		}
		return nil
	}
	got := outline(w.look())
	conformance.True(t, !strings.Contains(got, "c_202403") && strings.Contains(got, "c_202404"), "%s", got)
}

func TestUnreachableServiceEndsTheRun(t *testing.T) {
	w := months(t, "202405", server.Options{})
	p := w.look()
	w.before = func(string) error { return &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")} }
	w.requests = nil
	// The run tries one table, for the shortest retry time.
	err := p.Run(context.Background(), w.pace)
	conformance.True(t, err != nil && strings.Contains(err.Error(), "c_202403") && len(w.requests) <= 6,
		"%v after %v", err, w.requests)
	w.before = nil
	p.Admin = w.adminWith(context.Background(), "wrong")
	conformance.Refused(t, p.Run(context.Background(), w.pace), "OTSAuthFailed", "error")
	for _, i := range p.Items {
		conformance.Equal(t, i.State, Planned, "%s", i.Have.Name)
	}
	conformance.Refused(t, conformance.ErrorOf(Look(context.Background(), p.Request)), "", "a look with a wrong key")
}

func TestContextEndsLooksAndWaits(t *testing.T) {
	w := months(t, "202405", server.Options{})
	ended, end := context.WithCancelCause(context.Background())
	end(errKilled)
	_, err := Look(ended, w.requestOf(context.Background()))
	conformance.True(t, errors.Is(err, errKilled), "%v", err)
	conformance.Is(t, SystemClock.Wait(ended, time.Hour), errKilled, "error")
	conformance.Equal(t, SystemClock.Wait(context.Background(), 0), nil, "Wait")
	conformance.Is(t, w.look().Run(ended, w.pace), errKilled, "error")
}

func TestPolicyOfAnotherPeriodIsRefused(t *testing.T) {
	w := newWorld(t, "202405", server.Options{})
	w.request.Template = conformance.Try(lifecycle.ParseTemplate("c_{day}")).Must(t)
	_, err := Look(context.Background(), w.requestOf(context.Background()))
	conformance.True(t, err != nil && len(w.requests) == 0, "%v after %v", err, w.requests)
}

func TestUnreadableArchiveEndsTheLook(t *testing.T) {
	w := months(t, "202405", server.Options{})
	must(t, os.WriteFile(w.dir, nil, 0o600))
	_, err := Look(context.Background(), w.requestOf(context.Background()))
	conformance.Refused(t, err, filepath.Base(w.dir), "error")
}

var must = conformance.Must

const policyText = `period: month
classes:
  - {up_to: 0, reserved: {read: 0, write: 50}, ttl: -1, max_versions: 1}
  - {up_to: 2, reserved: {read: 20, write: 1}, ttl: 864000}
  - {archive: %s}
`

// world is an instance with monthly tables, a policy, and a clock that advances only while a run waits.
type world struct {
	t   *testing.T
	own *client.Admin // client without faults
	*tabletest.Store
	clock    time.Time
	waits    []time.Duration
	said     []string
	requests []string // operations and tables of requests
	dir      string   // the archive: a folder, or the address of one in a store
	request  Request  // request whose Admin is not set
	pace     Pace

	// before is called before each request, lost after each response. If they return an error, the client gets it.
	before, lost func(operation string) error
	stop         context.CancelCauseFunc // ends the current run
}

func newWorld(t *testing.T, now string, o server.Options) *world {
	t.Helper()
	return newWorldIn(t, filepath.Join(t.TempDir(), "archive"), now, o)
}

func newWorldIn(t *testing.T, dir, now string, o server.Options) *world {
	t.Helper()
	w := &world{t: t, clock: time.Now().Truncate(time.Second), dir: dir}
	o.Now = func() time.Time { return w.clock }
	w.Store = tabletest.Open(t, o)
	w.own = w.Store.Admin
	w.own.RetryFor = time.Nanosecond
	w.request = Request{Target: "here", Now: w.month(now)}
	w.request.Policy = conformance.Try(lifecycle.Parse("policy", fmt.Appendf(nil, policyText, w.dir))).Must(t)
	w.request.Template = conformance.Try(lifecycle.ParseTemplate("c_{month}")).Must(t)
	w.pace = Pace{Say: func(_ words.Kind, line string) { w.said = append(w.said, line) }, RetryFor: 1, Clock: Clock{
		Now: func() time.Time { return w.clock },
		Wait: func(_ context.Context, d time.Duration) error {
			w.waits = append(w.waits, d)
			w.clock = w.clock.Add(d)
			return nil
		},
	}}
	return w
}

func (w *world) month(text string) time.Time {
	w.t.Helper()
	return conformance.Try(time.Parse("200601", text)).Must(w.t).AddDate(0, 0, 14)
}

// RoundTrip is the network of the world's clients.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	operation := path.Base(r.URL.Path)
	w.requests = append(w.requests, operation)
	if w.before != nil {
		if err := w.before(operation); err != nil {
			return nil, err
		}
	}
	res, err := w.Server.Transport().RoundTrip(r)
	if err == nil && w.lost != nil {
		if err := w.lost(operation); err != nil {
			res.Body.Close()
			return nil, err
		}
	}
	return res, err
}

func (w *world) admin(ctx context.Context) *client.Admin {
	return w.adminWith(ctx, server.DefaultAccessKeySecret)
}

func (w *world) adminWith(ctx context.Context, key string) *client.Admin {
	w.t.Helper()
	sdk, err := client.New(ctx, client.Target{Endpoint: "http://embedded", Instance: server.DefaultInstance, Transport: w,
		Credentials: &common.DefaultCredentialsProvider{AccessKeyID: server.DefaultAccessKeyID, AccessKeySecret: key}}, nil)
	must(w.t, err)
	return &client.Admin{Client: sdk, Context: ctx, RetryFor: time.Nanosecond}
}

func TestMain(m *testing.M) { conformance.Main(m) }

func (w *world) create(month string, rows int, d table.Definition) {
	w.t.Helper()
	a := w.own
	name := "c_" + month
	must(w.t, a.Create(name, []table.KeyColumn{{Name: "id", Type: table.Integer}}, d))
	for i := range rows {
		w.put(name, int64(i))
	}
}

var asMade = table.Definition{TimeToLive: -1, MaxVersions: 1, ReservedRead: 1, ReservedWrite: 2}

func (w *world) put(name string, id int64) {
	w.t.Helper()
	must(w.t, tabletest.Do(w.own.Client, tabletest.Put(name, tabletest.Key("id", id),
		tabletest.Cells{"v": fmt.Sprint(name, " ", id)})))
}

func (w *world) look() *Plan {
	w.t.Helper()
	return conformance.Try(Look(context.Background(), w.requestOf(context.Background()))).Must(w.t)
}

func (w *world) requestOf(ctx context.Context) Request {
	w.t.Helper()
	r := w.request
	r.Admin = w.admin(ctx)
	if r.Policy.Classes[2].Archives() {
		r.Archive = w.place()
	}
	return r
}

func (w *world) place() *archive.Place {
	w.t.Helper()
	return conformance.Try(archive.At(w.t.Context(), w.dir, jobdir.Options{})).Must(w.t)
}

// run makes a plan and carries it out. A run ended by w.stop returns the cause.
func (w *world) run() (*Plan, error) {
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	w.stop = stop
	p, err := Look(ctx, w.requestOf(ctx))
	if err != nil {
		return nil, err
	}
	return p, p.Run(ctx, w.pace)
}

func (w *world) mustRun() *Plan {
	w.t.Helper()
	return conformance.Try(w.run()).Must(w.t)
}

func (w *world) tables() string {
	w.t.Helper()
	a := w.own
	names := conformance.Try(a.List()).Must(w.t)
	slices.Sort(names)
	var all []string
	for _, name := range names {
		d := conformance.Try(a.Describe(name)).Must(w.t)
		all = append(all, fmt.Sprintf("%s %d/%d %d %d", name, d.ReservedRead, d.ReservedWrite, d.TimeToLive, d.MaxVersions))
	}
	return strings.Join(all, ", ")
}

// outline formats a plan briefly.
func outline(p *Plan) string {
	var all []string
	for _, i := range p.Items {
		text := fmt.Sprintf("%s age %d class %d %s", i.Have.Name, i.Age, i.Class.Number, i.State)
		for _, s := range i.Settings() {
			text += fmt.Sprintf(" %s=%d", s.Name, s.To)
		}
		if i.Exports() {
			text += " export"
		}
		if i.Drop {
			text += " drop"
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

func (w *world) heard(part string) bool {
	return slices.ContainsFunc(w.said, func(line string) bool { return strings.Contains(line, part) })
}

func (w *world) count(operation string) (n int) {
	for _, r := range w.requests {
		if r == operation {
			n++
		}
	}
	return n
}

var errKilled = errors.New("the run was killed")
