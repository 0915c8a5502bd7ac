package scaleout

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/jobs/scaleout/runfile"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/source"
	"github.com/google/go-cmp/cmp"
)

// made holds the results of a job whose tasks are done, to be put into its directory. Most of its numbers differ.
type made struct {
	*world
	p        *process
	job      *Job
	splits   []*splitResult
	shards   []*shardResult
	reduced  []*reducedResult
	compared []*compareResult
	rejects  map[*done][]keptReject
	after    func() // changes stored objects
}

// withResults calls test with a job of an input of 30 records, one of them bad, 2 splits and 3 shards.
func withResults(t *testing.T, test func(m *made)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.verify = true
		good := strings.Repeat("k1,one\n", 20)
		w.inputs = []string{w.file("in.csv", "id,what\n"+good+"k1;one\n"+good[:63])}
		w.planned(func(r *Request) { r.Workers, r.SplitSize = 1, 110 })
		must(t, w.start("ends it", 1, -1, 0).run(func(_ context.Context, j *Job) error {
			m := &made{world: w, p: j.store.(*process), job: j, rejects: map[*done][]keptReject{}, after: func() {}}
			m.make()
			test(m)
			return nil
		}))
	})
}

func (m *made) at(seconds int) time.Time {
	return m.job.Plan.Planned.Add(time.Duration(seconds) * time.Second)
}

func (m *made) make() {
	of := func(by string, start, end int, cpu float64) done {
		d := m.job.newDone(by)
		d.By, d.CPU, d.Started, d.Ended = by, cpu, m.at(start), m.at(end)
		return d
	}
	for i, by := range []string{"b", "a"} {
		run := fmt.Sprint("runs/", i)
		m.splits = append(m.splits, &splitResult{done: of(by, 2-i, 5-i, 0.25), Split: i, Read: 14 + 2*int64(i),
			Rows: 12 + int64(i), ExpiredCells: 1 + int64(i), Objects: []runfile.Object{{Name: run, Bytes: 50 + 10*int64(i)}},
			Index:     runfile.Object{Name: run + ".index"},
			Snapshots: []source.Snapshot{{Name: "s", Taken: m.at(-3600), Ranges: []string{by}}}})
		m.reduced = append(m.reduced, &reducedResult{done: of(by, 0, 0, 100), Shard: i,
			Objects: []runfile.Object{{Name: fmt.Sprintf("writing/000%d/reduced.%s", i, by), Bytes: 30 + 40*int64(i)}}})
	}
	for i, rows := range []int64{4, 6, 11} {
		k, refused, superseded := int64(1)<<i, []int64{0, 1, 0}[i], []int64{1, 2, 0}[i]
		m.shards = append(m.shards, &shardResult{done: of("ca"[i%2:i%2+1], 9-i, 10+10*(i%2), float64(k)), Shard: i,
			From: rows + refused + superseded, Superseded: superseded, written: written{Written: rows, Refused: refused,
				Attempts: int(k), WriteCU: 10 * k, Requests: 100 * k, RowsSent: 11 * k, Throttled: 12 * k, Retried: 13 * k,
				Maybe: 14 * k, Expired: 15 * k}})
		m.compared = append(m.compared, &compareResult{done: of("d", 30, 31, 8*float64(k)), Shard: i, Comparison: Comparison{
			rows, 3 * k, 4 * k, 5 * k, []difference{{Kind: fmt.Sprint(i)}}}})
	}
	m.shards[0].LateUntil, m.shards[1].LateUntil = m.at(60), m.at(120)
	kept := func(record int64, code, text string) keptReject {
		r := keptReject{Record: record, Read: text != "", Reject: table.Reject{Raw: []byte(text)}}
		r.Reject.Reason.Code, r.Reject.Location = code, table.Location{Source: "in", Record: record + 1}
		return r
	}
	m.rejects[&m.splits[0].done] = []keptReject{kept(13, "bad", "bad 13"), kept(0, table.CodeSeam, "bad 0")}
	m.rejects[&m.splits[1].done] = []keptReject{kept(29, "bad", "bad 29"), kept(14, "bad", "bad 14"),
		kept(20, "bad", "bad 20")}
	m.rejects[&m.shards[1].done] = []keptReject{kept(15, "refused", "")}
}

// put stores the results, and objects that some of them name.
func (m *made) put() {
	commit := func(name string, r result) {
		lists := &rejectLists{store: m.store, name: "rejects/" + strings.NewReplacer("/", "-", ".json", "").Replace(name)}
		for _, one := range m.rejects[r.head()] {
			must(m.t, lists.add(m.p.ctx, &one))
		}
		must(m.t, errors.Join(lists.close(m.p.ctx, r.head()), m.job.commit(m.p.ctx, m.store, name, r)))
	}
	for i, r := range m.splits {
		commit(splitName(i), r)
	}
	for i, r := range m.reduced {
		commit(shardFolder(i)+"/"+reducedName, r)
	}
	for i, r := range m.shards {
		commit(shardName(i), r)
	}
	for i, r := range m.compared {
		commit(compareName(i), r)
	}
	for _, name := range []string{"runs/0", "runs/0.index", "runs/1", "runs/1.index", "runs/lost", "runs/1.2",
		"rejects/lost", "probe/1", "writing/0000/reduced.b", "writing/0000/reduced.lost", "writing/0000/lease.1",
		"writing/0001/reduced.a"} {
		m.store.Objects[name] = "text"
	}
	m.after()
}

func (m *made) status() *Status {
	return conformance.Try(conformance.Try(NewWatcher(m.p.ctx, m.store)).Must(m.t).Status(m.p.ctx)).Must(m.t)
}

func TestSummaryStatusAndPageAddUpAllResults(t *testing.T) {
	withResults(t, func(m *made) {
		temp := &m.job.o.Load.Limits.TempDir
		*temp += "/missing"
		conformance.Refused(t, conformance.ErrorOf(m.job.folder()), "create folder for temporary files", "without a folder")
		*temp, m.store.Objects[stopName] = m.dir, ""
		refused(t, conformance.ErrorOf(m.job.finish(m.p.ctx)), exitcode.Failed, "the job was stopped")
		delete(m.store.Objects, stopName)
		m.put()
		late, code, yes := m.at(120), exitcode.Differences, true
		want := &Status{Job: m.job.Plan.ID, State: StateEnding, Table: "t", Planned: m.at(0), LateUntil: &late, Read: 30,
			Stages:   []StageState{{"read", 2, 2, 0}, {"write", 3, 3, 0}, {"verify", 3, 3, 0}},
			Rejected: 6, Superseded: 3, Written: 21, BytesRead: 210, Bytes: 218, ReadRate: 7.5, WriteRate: 21. / 13}
		conformance.Equal(t, cmp.Diff(want, m.status()), "", "the status before the end (-want +got)")
		s := conformance.Try(m.job.finish(m.p.ctx)).Must(t)
		want.State, want.ExitCode, want.LateUntil = "finished", &code, nil
		conformance.Equal(t, cmp.Diff(want, m.status()), "", "the status after the end (-want +got)")
		want.Stages = []StageState{{"read", 9, 5, 2}, {"write", 7, 6, 3}}
		for ended := range 2 {
			var text strings.Builder
			must(t, want.Metrics(&text))
			values := regexp.MustCompile(`(?m)^#.*\n|tsimport_job_|[{}"]|\b\w*=`).ReplaceAllString(text.String(), "")
			conformance.Equal(t, strings.ReplaceAll(values, "\n", "; "), fmt.Sprintf("tasksread,done 5; tasksread,held 2; "+
				"tasksread,open 2; taskswrite,done 6; taskswrite,held 3; taskswrite,open 0; records_totalread 30; "+
				"records_totalwritten 21; records_totalrejected 6; records_totalsuperseded 3; bytes_read_total 210; bytes 218; "+
				"done %d; ", 1-ended), "the metrics")
			want.ExitCode = nil
		}
		took := s.Ended.Sub(m.at(0)).Seconds()
		conformance.True(t, took >= 120 && took < 130 && s.CPU == 0 && s.Rejected == 6 && s.By == "ends it", "%+v", s.done)
		all := &Summary{done: s.done, Here: true, Planned: m.at(0), State: "finished", ExitCode: code,
			Target: m.job.Plan.Job.Target, Table: "t", Inputs: m.inputs, RejectsFiles: []string{"rejects.csv", "rejects.jsonl"},
			SummaryCounts: SummaryCounts{Read: 30, Written: 21, Superseded: 3, Maybe: 98, ExpiredCells: 108},
			SummaryLive: SummaryLive{Consistent: &yes,
				Snapshots: []source.Snapshot{{Name: "s", Taken: m.at(-3600), Ranges: []string{"b", "a"}}}},
			SummaryWork: SummaryWork{2, 3, 3, 7, 110, 100, 70, 700, 77, 84, 91, 63.5, 4, 13, took, 21 / took, 12},
			Reasons: []ledger.ReasonCount{{Code: "bad", Count: 4, First: rundir.Reason{File: "in", Record: 14, Code: "bad"}},
				{Code: table.CodeSeam, Count: 1, First: rundir.Reason{File: "in", Record: 1, Code: table.CodeSeam}},
				{Code: "refused", Count: 1,
					First: rundir.Reason{File: m.inputs[0], Record: 16, Line: 17, Offset: 113, Code: "refused"}}},
			Compared: &Comparison{21, 21, 28, 35, []difference{{Kind: "0"}, {Kind: "1"}, {Kind: "2"}}}}
		conformance.Equal(t, cmp.Diff(all, s, cmp.AllowUnexported(Summary{})), "", "the summary (-want +got)")
		conformance.Equal(t, m.store.Objects["rejects.csv"],
			"id,what\nbad 0\nbad 13\nbad 14\nk1,one\nbad 20\nbad 29\n", "the rejected records")
		page := strings.NewReplacer(m.dir+"/", "", "</td><td", "</td> <td", `<th class="n">`, "#").
			Replace(m.store.Objects[pageName])
		page = regexp.MustCompile(`(?s)<style.*?</style>|<script.*?</script>|<[^>]*>`).ReplaceAllString(page, "")
		conformance.Equal(t, strings.Join(strings.Fields(page), " "), "Load into t Load into tfinished 1 inputs to test, "+
			"by 3 processes: 2 splits and 3 shards. rows written21rows a second0from the plan to the endreading4swriting13s "+
			"Records#records read 30 written 21 rejected 6 superseded 3 Comparison#rows compared 21 missing 21 different 28 "+
			"surplus 35 Rejectedcode#recordsfirst bad 4 record 14 of in: SeamOfFiles 1 record 1 of in: refused 1 record 16 "+
			"of in.csv: Shards#shard#ranges#rows#written#superseded#rejected#requests#throttled#attempts#timeby "+
			"0 1 5 4 1 0 100 12 1 1s c 1 1 9 6 2 1 200 24 2 12s a 2 1 11 11 0 0 400 48 4 3s c", "the page")
		kept := []string{}
		for name := range m.store.Objects {
			if !strings.HasSuffix(name, ".json") {
				kept = append(kept, name)
			}
		}
		slices.Sort(kept)
		conformance.Equal(t, strings.Join(kept, " "), "rejects.csv rejects.jsonl rejects/shards-0001 rejects/splits-000000 "+
			"rejects/splits-000001 report.html runs/0 runs/0.index runs/1 runs/1.index writing/0000/lease.1 "+
			"writing/0000/reduced.b writing/0001/reduced.a", "the objects that remain")
		conformance.Equal(t, conformance.Try(m.job.finish(m.p.ctx)).Must(t).Here, false, "it has ended the job twice")
	})
}

// TestStatusNamesTheStage takes the results away, the last ones first, and adds failures and leases.
func TestStatusNamesTheStage(t *testing.T) {
	withResults(t, func(m *made) {
		m.put()
		for _, c := range []struct {
			lack, state string
			left        float64 // 0 means unknown
		}{{compareName(1), StateComparing, 0}, {shardName(2), StateWriting, 11 / (10. / 12)},
			{shardName(0), StateWriting, 16 / (6. / 12)}, {shardName(1), StateWriting, 0},
			{splitName(1), StateReading, 3 * 106. / 112}, {splitName(0), StatePlanned, 0}} {
			delete(m.store.Objects, c.lack)
			s := m.status()
			conformance.True(t, s.State == c.state && (s.SecondsLeft != nil) == (c.left != 0) &&
				(c.left == 0 || math.Abs(*s.SecondsLeft-c.left) < 1e-9), "without %s: %+v, want %+v", c.lack, s, c)
		}
		j, ctx := m.job, m.p.ctx
		must(t, j.stop(ctx, &StoppedError{Why: "a test"}))
		usage := error(&plan.UsageError{Message: "read oss://u:secret@b/in.csv"})
		for _, err := range []error{nil, jobdir.ErrLost, jobdir.ErrLate, errNoSlot, &StoppedError{}, &jobdir.HeldError{},
			usage} {
			conformance.Equal(t, j.told(ctx, stageWrite, 1, err), err, "the error became")
			conformance.Equal(t, m.stored(failuresFolder+"write-000001.json"), err == usage, "%v is a failure", err)
		}
		failed := m.store.Objects[failuresFolder+"write-000001.json"]
		for name, body := range map[string]string{"read-x": failed, "other-000001": failed, "verify-000001": "{",
			"finish-000001": strings.ReplaceAll(failed, j.Plan.ID, "x"), "verify-000002": failed, "finish-000000": failed} {
			m.store.Objects[failuresFolder+name+".json"] = body
		}
		l := conformance.Try(jobdir.Acquire(ctx, jobdir.Below(m.store, splitFolder(0)),
			jobdir.LeaseOptions{Owner: "other", Clock: j.o.Clock})).Must(t)
		s := m.status()
		want := &Failure{Plan: j.Plan.ID, Stage: stageWrite, Index: 1, By: "ends it", ExitCode: exitcode.Usage,
			Message: "read oss://xxxxx@b/in.csv"}
		want.At = s.Failures[0].At
		conformance.Equal(t, cmp.Diff([]*Failure{want, want}, s.Failures), "", "the failures (-want +got)")
		conformance.Equal(t, cmp.Diff([]Worker{{stageRead, 0, "other", 0}}, s.Working), "", "who works (-want +got)")
		conformance.True(t, s.Stages[0] == StageState{"read", 2, 0, 1} && s.State == StateStopped && s.Stopped == "a test",
			"%+v", s)
		l.Abandon()
		time.Sleep(jobdir.Term + time.Second)
		silent := m.status().Working[0].Silent
		conformance.True(t, silent > 30 && silent < 32 && m.status().Stages[0].Held == 0, "it is silent for %v s", silent)
		lease := m.store.Objects[splitFolder(0)+"/lease.000000001"]
		for i := range mostWorkers + 5 {
			m.store.Objects[splitFolder(10+i)+"/lease.000000001"] = lease
			m.store.Objects[fmt.Sprintf("%sread-%06d.json", failuresFolder, i+10)] = failed
		}
		time.Sleep(watchEvery)
		s = m.status()
		conformance.True(t, len(s.Failures) == mostFailures && len(s.Working) == mostWorkers && s.Stages[0].Held == 6,
			"it shows %d failures and %d workers; %d tasks are held", len(s.Failures), len(s.Working), s.Stages[0].Held)
	})
}

// TestResultsThatDoNotBalanceEndNoJob changes results before they are stored, or a stored object.
func TestResultsThatDoNotBalanceEndNoJob(t *testing.T) {
	of := func(m *made, r result, i int) *keptReject { return &m.rejects[r.head()][i] }
	inObject := func(name, from, to string) func(*made) {
		return func(m *made) { m.after = func() { m.replace(name, from, to) } }
	}
	for _, c := range []struct {
		says   string
		change func(m *made)
	}{
		{"split 1 has not been read yet", func(m *made) { m.splits = m.splits[:1] }},
		{"read rejects/splits-000000 of memory: file does not exist",
			func(m *made) { m.after = func() { delete(m.store.Objects, "rejects/splits-000000") } }},
		{"shard 2 has not been written yet", func(m *made) { m.shards = m.shards[:2] }},
		{"shard 2 has not been compared yet", func(m *made) { m.compared = m.compared[:2] }},
		{"runs have 1 more rows", func(m *made) { m.splits[1].Rows++; m.splits[1].Read++ }},
		{"runs have -1 more rows", func(m *made) { m.shards[0].From++; m.shards[0].Written++ }},
		{"30 records read, but 21 written + 5 rejected + 3 superseded = 29",
			func(m *made) { delete(m.rejects, &m.shards[1].done) }},
		{"record 14 of in.csv was rejected twice", func(m *made) { of(m, m.shards[1], 0).Record = 13 }},
		{"attempt b belongs to no input", func(m *made) { of(m, m.splits[0], 1).Record = -1 }},
		{"attempt b belongs to no input", func(m *made) { of(m, m.splits[0], 1).Source = -1 }},
		{"attempt b belongs to no input", func(m *made) { of(m, m.splits[0], 1).Source = 1 }},
		{"there is no header -1", func(m *made) { of(m, m.splits[1], 2).Header = -1 }},
		{"there is no header 1", func(m *made) { of(m, m.splits[1], 2).Header = 1 }},
		{"in.csv ends 1 records before its planned end", func(m *made) { of(m, m.shards[1], 0).Record = 30 }},
		{"rejected record 21 of in.csv is gone", func(m *made) { of(m, m.splits[1], 2).Read = false }},
		{"record 1 of in.csv was rejected, but no split", func(m *made) { m.job.Plan.Splits[0].Parts[0].Record = 1 }},
		{"record 21 of in.csv was rejected, but no split", func(m *made) { m.job.Plan.Splits[1].Parts[0].Records = 1 }},
		{"rejects/splits-000000 of memory: it is damaged", inObject("rejects/splits-000000", "bad", "Bad")},
		{"rejects/splits-000000 of memory: it is damaged", inObject("rejects/splits-000000", "bad", "bads")},
		{"rejects/splits-000000 of memory has 2 records, want 3", inObject(splitName(0), `"records":2`, `"records":3`)},
		{"attempt b has 3 rejects but keeps 2", func(m *made) {
			m.splits[0].Read++
			inObject(splitName(0), `"rejected":2`, `"rejected":3`)(m)
		}},
		{"its counts do not balance", inObject(splitName(0), `"rows":12`, `"rows":11`)},
		{"its counts do not balance", inObject(splitName(1), `"split":1`, `"split":0`)},
		{"its counts do not balance", inObject(shardName(1), `"from":9`, `"from":8`)},
		{"its counts do not balance", inObject(shardName(1), `"shard":1`, `"shard":0`)},
	} {
		withResults(t, func(m *made) {
			c.change(m)
			m.put()
			s, err := m.job.finish(m.p.ctx)
			conformance.True(t, s == nil && err != nil && !m.stored(summaryName), "%s: %+v", c.says, s)
			conformance.Contains(t, strings.ReplaceAll(fmt.Sprint(err), m.dir+"/", ""), c.says, "the error")
		})
	}
}

// TestFullDiskLosesNoReject has a disk that is full when the file of rejects is closed.
func TestFullDiskLosesNoReject(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this system has no /dev/full")
	}
	withResults(t, func(m *made) {
		m.put()
		conformance.Try(m.job.prepare(m.p.ctx)).Must(t).Plan.Headers[0].Dir = "../full"
		full := filepath.Join(conformance.Try(m.job.folder()).Must(t), "full")
		must(t, errors.Join(os.Mkdir(full, 0o700), os.Symlink("/dev/full", filepath.Join(full, "rejects.csv"))))
		m.p.goesWrong(func(_, name string, _ bool) error {
			if strings.HasSuffix(name, ".csv") {
				return errors.New("the file that was cut is stored")
			}
			return nil
		})
		conformance.Is(t, conformance.ErrorOf(m.job.finish(m.p.ctx)), syscall.ENOSPC, "the end of the job")
	})
}
