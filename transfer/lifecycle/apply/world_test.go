package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/lifecycle"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/tabletest"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/transfer/lifecycle/archive"
)

var must = conformance.Must

const policyText = `period: month
classes:
  - {up_to: 0, reserved: {read: 0, write: 50}, ttl: -1, max_versions: 1}
  - {up_to: 2, reserved: {read: 20, write: 1}, ttl: 864000}
  - {archive: %s}
`

// world is an instance with tables of months, a policy, and a clock that only moves when somebody waits.
type world struct {
	t   *testing.T
	own *client.Admin // nothing disturbs it
	*tabletest.Store
	clock    time.Time
	waits    []time.Duration
	said     []string
	requests []string // operation and table
	dir      string   // the archive: a folder, or the address of one in a store
	request  Request  // but for its Admin
	pace     Pace

	// before is called before each request is sent, lost after each answer; the client gets their error instead.
	before, lost func(operation string) error
	stop         context.CancelCauseFunc // of the current run
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
	w.t.Helper()
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

func (w *world) updateValue(name string, id int64, v any) {
	w.t.Helper()
	must(w.t, tabletest.Do(w.own.Client, tabletest.Update(name, tabletest.Key("id", id), tabletest.Cells{"v": v})))
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

// run looks and carries out what it sees. A run that w.stop ends returns its cause.
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

// outline is a plan in short.
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
