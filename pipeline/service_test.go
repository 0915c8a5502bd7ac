package pipeline

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"example.com/tsimport/engine/enginetest"
	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source/sourcetest"
)

// The real service's answers are not known for certain, so a load must be correct with any plausible ones.
func TestLoadIsCorrectForAnyTableDescription(t *testing.T) {
	for name, answers := range map[string]sim.Answers{
		"a new table is missing": {NewTableMissing: 300 * time.Millisecond},
		"no bounds":              {HideBounds: true},
		"places are machines":    {HideBounds: true, Locations: sim.LocateNodes},
		"places are blocks":      {HideBounds: true, Locations: sim.LocateBlocks},
		"places have no names":   {HideBounds: true, Locations: sim.LocateNothing},
	} {
		for _, template := range []string{"", "t_{bucket(id, 3)}"} {
			t.Run(name+" "+template, virtual(func(t *testing.T, w *world) {
				w.template = template
				text := numbered("k", 1000)
				simulated := server.Simulation{Config: sim.Config{Partitions: 6, Answers: answers}}
				must(t, w.server.Sim().Simulate("", simulated))
				for range 2 { // into a new table, then into an existing one
					cfg := w.config(w.file("in.csv", text))
					cfg.surveyEvery = 10 * time.Millisecond
					r := w.load(cfg)
					conformance.True(t, r.Written == 1000 && r.State == StateFinished, "%+v", r)
				}
				w.wantRows(lastOf(t, text))
			}))
		}
	}
}

// At the window's lower edge, the service decides: a row there is written or rejected with the service's message.
func TestServiceDecidesTimestampAtLowerEdge(t *testing.T) {
	for _, exclusive := range []bool{false, true} {
		now := time.Now().Truncate(time.Second).Add(500 * time.Millisecond)
		w := newWorldOf(t, server.Options{Now: func() time.Time { return now }})
		w.simulate(t, server.Simulation{Choices: server.Choices{ExclusiveLowerEdge: exclusive}})
		edge := now.Truncate(time.Second).Add(-1000 * time.Second).UnixMilli()
		cfg := w.config(w.file("a.csv", fmt.Sprintf("id,at,a\nin,%d,1\nedge,%d,2\nout,%d,3\n", edge+1000, edge, edge-60_000)))
		cfg.Target.Define.MaxDeviation = 1000
		cfg.Read.Convert.VersionColumn, cfg.Columns.Exclude = "at", []string{"at"}
		r := w.load(cfg)
		want := contents{"in": {"a": "1"}, "edge": {"a": "2"}}
		if exclusive {
			delete(want, "edge")
		}
		got := w.rowsOf("t")
		conformance.True(t, len(got) == len(want) && got["edge"]["a"] == want["edge"]["a"] && r.Written == int64(len(want)) &&
			r.Rejected == int64(3-len(want)), "exclusive %v: %v, %d written, %d rejected: %q", exclusive, got, r.Written,
			r.Rejected, lines(t, cfg.RunDir+"/rejects.jsonl"))
	}
}

func TestNetworkFailureDuringTableLookUpDoesNotFailLoad(t *testing.T) {
	for _, template := range []string{"", "t_{what}"} {
		for _, fault := range []faults.Fault{{Action: faults.DropBefore}, {Action: faults.FlipBit, Bit: 99},
			{Action: faults.BadBody}} {
			t.Run(fmt.Sprintf("table %s, action %d", template, fault.Action), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					for n := 0; lookFailsAt(t, template, fault, n); n++ {
					}
				})
			})
		}
	}
}

// lookFailsAt runs a load in which the n-th look-up of a table fails. It reports whether there was such a look-up.
func lookFailsAt(t *testing.T, template string, fault faults.Fault, n int) bool {
	w := newWorld(t)
	w.template = template
	w.plan.Only = func(operation string) bool { return operation == "DescribeTable" }
	var failed atomic.Bool
	w.fail(fault, func(r faults.Request) bool {
		hit := r.N == n || r.N == n+1
		failed.Store(hit || failed.Load())
		return hit
	})
	cfg := w.config(w.file("in.csv", fortyRows()))
	cfg.surveyEvery = time.Hour // survey readings have no fixed time, and are repeated anyway
	r, err := cfg.run(context.Background())
	conformance.MustTrue(t, err == nil && r.Written == 40, "look %d: %v", n, err)
	return failed.Load()
}

func TestMissingPermissionShowsBeforeFirstRow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		numbered := func(cfg *trial) {
			cfg.Target.Key = append(cfg.Target.Key, table.KeyColumn{Name: "no", Type: table.Integer, Auto: true})
		}
		for _, tt := range []struct {
			operation string
			set       func(*trial)
			template  string
		}{{"GetRow", func(cfg *trial) { cfg.Write.Condition = table.ExpectNotExist }, ""},
			{"GetRow", func(cfg *trial) { cfg.Write.Condition = table.ExpectNotExist }, "t_{n}"}, {"GetRange", numbered, ""},
			{"DeleteRow", numbered, ""}, {"BatchGetRow", func(cfg *trial) { cfg.Write.Mode = table.Increment }, ""}} {
			for _, denied := range []bool{true, false} {
				w := newWorld(t)
				w.template = tt.template
				written := 0
				w.plan.Only = func(op string) bool {
					if op == "BatchWriteRow" {
						written++
					}
					return op == tt.operation
				}
				if denied {
					w.plan.Decide = func(faults.Request) faults.Fault {
						return faults.Fault{Action: faults.Refuse, Code: "OTSNoPermissionAccess"}
					}
				}
				cfg := w.config(w.file("in.csv", "id,n\na,1\nb,2\n"))
				cfg.Lanes.Concurrency = 1
				tt.set(&cfg)
				r, err := cfg.run(context.Background())
				switch {
				case !denied && (err != nil || r.Written != 2):
					t.Errorf("%s%s: %v", tt.operation, tt.template, err)
				case denied && (err == nil || !strings.Contains(err.Error(), "ots:"+tt.operation) || written > 0):
					t.Errorf("%s%s denied: %d requests to write, %v", tt.operation, tt.template, written, err)
				}
			}
		}
	})
}

// While access keys are rotated, a single request may be refused.
func TestStrayRefusalDoesNotEndLoad(t *testing.T) {
	virtually(t, func(t *testing.T, w *world) {
		w.fail(faults.Fault{Action: faults.Refuse, Code: "OTSAuthFailed"}, func(r faults.Request) bool { return r.N == 2 })
		cfg := w.config(w.file("in.csv", "id,n\na,1\nb,2\nc,3\nd,4\ne,5\n"))
		cfg.Lanes.BatchRows, cfg.Lanes.Concurrency = 1, 1
		r := w.load(cfg)
		conformance.True(t, r.Written == 5 && len(w.rows()) == 5, "%+v", r.ReportCounts)
	})
}

func TestNewTableBeginsWithRangesOfItsRows(t *testing.T) {
	text := numbered("k", 3000)
	want := lastOf(t, text)
	for answer, heard := range map[string]int{sim.PreSplitHeard: 6, sim.PreSplitIgnored: 1, sim.PreSplitRefused: 1} {
		t.Run(answer, virtual(func(t *testing.T, w *world) {
			must(t, w.server.Sim().Simulate("", server.Simulation{Config: sim.Config{Answers: sim.Answers{PreSplit: answer}}}))
			cfg := w.config(w.file("in.csv", text))
			cfg.Target.PreSplit = 6
			r := w.load(cfg)
			w.wantRows(want)
			w.verifies(cfg, r)
			conformance.True(t, r.PreSplit != nil && r.PreSplit.Ranges == 6 && r.PreSplit.Heard == heard &&
				(r.PreSplit.Refused != "") == (answer == sim.PreSplitRefused), "%+v", r.PreSplit)
			conformance.True(t, r.Partitions == heard && r.Created, "%d partitions, created %v", r.Partitions, r.Created)
			for _, p := range w.server.Sim().Stats()["t"].Partitions {
				if each := int64(3000 / heard); p.Position >= 0 && (p.Rows < each*2/3 || p.Rows > each*3/2) {
					t.Errorf("partition %d got %d rows, want about %d", p.Position, p.Rows, each)
				}
			}
		}))
	}
}

// merged is a service that adds a field to DescribeTable's answers that the embedded service lacks.
type merged struct {
	http.RoundTripper
	number protowire.Number
	field  []byte
}

func fullRows(to http.RoundTripper) http.RoundTripper {
	return merged{to, 3, protowire.AppendVarint(protowire.AppendTag(nil, 7, protowire.VarintType), 1)}
}

func (f merged) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := f.RoundTripper.RoundTrip(r)
	if err != nil || r.URL.Path != "/DescribeTable" || res.StatusCode != http.StatusOK {
		return res, err
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	body = protowire.AppendBytes(protowire.AppendTag(body, f.number, protowire.BytesType), f.field)
	return enginetest.Sign(res, r.URL.Path, body), nil
}

// In a table with the option update_full_row, an update would remove the columns that it does not name.
func TestUpdatesOfWholeRowTablesAreRefusedEarly(t *testing.T) {
	w := newWorld(t)
	w.load(w.config(w.file("first.csv", "id,n,m\na,1,2\n")))
	for _, tt := range []struct {
		mode    table.Mode
		refused string
	}{{table.Update, "--mode update"}, {table.Increment, "--mode increment"}, {table.Put, ""}} {
		before := w.plan.Requests()
		cfg := w.counted(w.file("in.csv", "id,n\na,5\n"))
		cfg.Target.Client.Transport, cfg.Write.Mode = fullRows(w.transport()), tt.mode
		cfg.Target.Key, cfg.Target.Create = nil, false
		delete(cfg.Columns.Types, "m")
		_, err := cfg.run(context.Background())
		sent := w.plan.Requests() - before
		switch {
		case tt.refused == "":
			conformance.True(t, err == nil && sent == 1, "--mode put: %d requests to write, %v", sent, err)
		case err == nil || !strings.Contains(err.Error(), tt.refused) || !strings.Contains(err.Error(), "update_full_row") ||
			sent != 0:
			t.Errorf("%s: %d requests to write, %v", tt.refused, sent, err)
		}
		cfg.Target.Client.Transport = w.transport()
		conformance.Equal(t, conformance.ErrorOf(cfg.run(context.Background())), nil, "a table without the option")
	}
}

// A global table does not accept timestamps from writers, and would refuse every row.
func TestTimestampsForGlobalTableAreRefusedEarly(t *testing.T) {
	w := newWorld(t)
	w.load(w.config(w.file("first.csv", "id,n,m\na,1,2\n")))
	for _, tt := range []struct{ version, refused string }{{"m", "--version-column m"}, {"", ""}} {
		before := w.plan.Requests()
		cfg := w.counted(w.file("in.csv", "id,n,m\na,5,1\n"))
		cfg.Target.Client.Transport = merged{w.transport(), 1,
			protowire.AppendString(protowire.AppendTag(nil, 6, protowire.BytesType), "g-1")}
		cfg.Read.Convert.VersionColumn = tt.version
		cfg.Target.Key, cfg.Target.Create = nil, false
		delete(cfg.Columns.Types, "m")
		_, err := cfg.run(context.Background())
		sent := w.plan.Requests() - before
		switch {
		case tt.refused == "" && (err != nil || sent != 1):
			t.Errorf("without timestamps: %d requests to write, %v", sent, err)
		case tt.refused != "" && (err == nil || !strings.Contains(err.Error(), tt.refused) ||
			!strings.Contains(err.Error(), "is global") || sent != 0):
			t.Errorf("%s: %d requests to write, %v", tt.refused, sent, err)
		}
	}
}

// fromRows returns a load from a source that is not a file, and the expected table.
func (w *world) fromRows(rows *sourcetest.Rows) (trial, contents) {
	cfg := w.config(rows.Name)
	cfg.Read.Sources = rows
	cfg.Target.Key[0].Type = table.Integer
	want := contents{}
	for i, d := range rows.Data {
		if rows.Bad[int64(i)] != nil || rows.Fail > 0 && i >= rows.Fail {
			continue
		}
		cells := map[string]string{"double": fmt.Sprint(d[2].Double), "flag": fmt.Sprint(d[3].Int != 0),
			"bytes": fmt.Sprint(d[4].Bytes)}
		if d[1].Kind != record.Null {
			cells["text"] = string(d[1].Bytes)
		}
		want[fmt.Sprint(i)] = cells
	}
	return cfg, want
}

func TestLoadTakesTypedRows(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order plan.Order) {
		rows := sourcetest.NewRows("rows", 1500)
		rows.Bad = map[int64]*table.Reason{17: {Code: table.CodeRagged, Message: "broken"}}
		cfg, want := w.fromRows(rows)
		cfg.Write.Order = order
		r := w.load(cfg)
		w.wantRows(want)
		w.verifies(cfg, r)
		conformance.True(t, r.Read == 1500 && r.Written == 1499 && r.Rejected == 1, "%+v", r)
		kept, err := filepath.Glob(filepath.Join(cfg.RunDir, "rejects*.ndjson"))
		conformance.MustTrue(t, err == nil && len(kept) == 1, "rejects: %v, %v", kept, err)
		if text, err := os.ReadFile(kept[0]); err != nil || !strings.HasPrefix(string(text), `{"id":17,"text":"row 17",`) {
			t.Errorf("rejects: %s, %v", text, err)
		}
	})
}

func TestTruncatedSourceEndsLoadAfterItsRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rows := sourcetest.NewRows("rows", 500)
	rows.Fail = 123
	cfg, want := w.fromRows(rows)
	r, err := cfg.run(context.Background())
	conformance.Refused(t, err, "read rows: it broke off after 123 rows", "the error")
	w.wantRows(want)
	conformance.True(t, r.Read == 123 && r.Written == 123 && r.ExitCode == exitcode.Failed, "%+v", r)
}

// A run is resumed only with its own source, not with another one of the same name.
func TestSourceWithOtherContentIsNotResumed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rows := sourcetest.NewRows("rows", 500)
	rows.Fail = 100
	cfg, _ := w.fromRows(rows)
	cfg.Resume.Look = true
	conformance.MustTrue(t, conformance.ErrorOf(cfg.run(context.Background())) != nil, "the source did not break off")
	other := sourcetest.NewRows("rows", 500)
	other.Data[3][2].Double = 5
	cfg.Read.Sources = other
	_, err := cfg.run(context.Background())
	conformance.Refused(t, err, "content of rows", "resumed with other content")
}

// crowded is a listener that closes connections beyond a number at once.
type crowded struct {
	net.Listener
	most int64
	open atomic.Int64
	many atomic.Int64 // number of connections closed
}

func (l *crowded) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= l.most {
			return &counted{Conn: c, open: &l.open}, nil
		}
		l.open.Add(-1)
		l.many.Add(1)
		c.Close()
	}
}

type counted struct {
	net.Conn
	open   *atomic.Int64
	closed atomic.Bool
}

func (c *counted) Close() error {
	if c.closed.CompareAndSwap(false, true) {
		c.open.Add(-1)
	}
	return c.Conn.Close()
}

// serveFew serves the store over the network, with at most most connections.
func (w *world) serveFew(most int64) (url string, few *crowded) {
	web := httptest.NewUnstartedServer(w.server)
	few = &crowded{Listener: web.Listener, most: most}
	web.Listener = few
	web.Start()
	w.t.Cleanup(web.Close)
	return web.URL, few
}

func TestLoadWorksWithFewerConnectionsThanWorkers(t *testing.T) {
	w := newWorld(t)
	url, few := w.serveFew(10)
	b := rowsOf("id,n\n", 20_000, func(i int) string { return fmt.Sprintf("k%d,1\n", i) })
	cfg := w.config(w.file("in.csv", b))
	cfg.Target.Client.Transport, cfg.Target.Client.Endpoint = nil, url
	cfg.Lanes.Concurrency, cfg.Lanes.BatchRows, cfg.Write.Order = 64, 20, plan.OrderNone
	r := w.load(cfg)
	conformance.Equal(t, r.Written, 20_000, "written")
	conformance.Equal(t, len(w.rows()), 20_000, "rows")
	n := few.many.Load()
	conformance.True(t, n <= 3*64, "%d connections were one too many", n)
	t.Logf("%d connections closed at once, %d requests, %d sent again", few.many.Load(), r.Requests, r.Retried)
}

// Rows of lost answers are looked up over the workers' connections, as another pool might get none. The time is real.
func TestLookUpsShareWorkerConnections(t *testing.T) {
	for most := range int64(3) {
		t.Run(fmt.Sprint(most+1, " connections"), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			url, _ := w.serveFew(most + 1)
			text := users(rand.New(rand.NewPCG(1, 1)), 300, 20)
			cfg := w.numbered(w.file("in.csv", text))
			cfg.Target.Client.Transport, cfg.Target.Client.Endpoint = nil, url
			cfg.Lanes.Concurrency, cfg.Lanes.BatchRows, cfg.Lanes.RetryFor = 8, 10, time.Minute
			w.fail(faults.Fault{Action: faults.DropAfter}, func(r faults.Request) bool { return r.N%5 == 1 && r.N < 40 })
			r := w.load(cfg)
			conformance.True(t, r.Written == 300 && r.Found != 0, "%d written, %d found", r.Written, r.Found)
			w.wantNumbered(text, cfg)
		})
	}
}

type refusing struct {
	base  http.RoundTripper
	word  []byte
	count *atomic.Int64
}

func (r refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	req = req.Clone(req.Context())
	req.Body = io.NopCloser(bytes.NewReader(body))
	if req.URL.Path != "/BatchWriteRow" || !bytes.Contains(body, r.word) {
		return r.base.RoundTrip(req)
	}
	r.count.Add(1)
	var answer []byte
	answer = protowire.AppendTag(answer, 1, protowire.BytesType)
	answer = protowire.AppendString(answer, "OTSParameterInvalid")
	answer = protowire.AppendTag(answer, 2, protowire.BytesType)
	answer = protowire.AppendString(answer, "A row is bad.")
	return enginetest.Sign(&http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{}, Request: req},
		req.URL.Path, answer), nil
}

func TestBatchKeepsConfiguredSizes(t *testing.T) {
	w := newWorld(t)
	b := rowsOf("id,n\n", 1000, func(i int) string { return fmt.Sprintf("k%04d,%d\n", i, i) })
	var largest, most atomic.Int64
	cfg := w.config(w.file("in.csv", b))
	cfg.Target.Client.Transport = sizes{w.server.Transport(), &largest}
	cfg.onSend = func(rows []table.Ref) {
		for n := int64(len(rows)); ; {
			if was := most.Load(); n <= was || most.CompareAndSwap(was, n) {
				return
			}
		}
	}
	cfg.Lanes.BatchBytes, cfg.Lanes.BatchRows = 2000, 17
	w.load(cfg)
	conformance.True(t, largest.Load() <= 2000 && most.Load() <= 17 && most.Load() >= 10,
		"a body of %d bytes, a request of %d rows", largest.Load(), most.Load())
}

type sizes struct {
	base    http.RoundTripper
	largest *atomic.Int64
}

func (s sizes) RoundTrip(r *http.Request) (*http.Response, error) {
	if was := s.largest.Load(); r.URL.Path == "/BatchWriteRow" && r.ContentLength > was {
		s.largest.Store(r.ContentLength)
	}
	return s.base.RoundTrip(r)
}
