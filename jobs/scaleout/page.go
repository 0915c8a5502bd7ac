package scaleout

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/page"
)

func pageOf(j *Job, s *Summary, shards []*shardResult) ([]byte, error) {
	n := func(v int64) string { return strconv.FormatInt(v, 10) }
	p := &page.Page{Title: "Load into " + s.Table, State: s.State, Tone: page.Warning}
	if s.ExitCode == exitcode.OK {
		p.Tone = page.Good
	}
	p.Lead = []string{fmt.Sprintf("%d inputs to %s, by %d processes: %d splits and %d shards.", len(s.Inputs), s.Target,
		s.Processes, s.Splits, s.Shards)}
	p.Facts = []page.Fact{
		{Name: "rows written", Value: n(s.Written)},
		{Name: "rows a second", Value: strconv.FormatFloat(s.RowsPerSecond, 'f', 0, 64), Note: "from the plan to the end"},
		{Name: "reading", Value: shortTime(s.ReadSeconds)},
		{Name: "writing", Value: shortTime(s.WriteSeconds)},
	}
	p.Tables = []page.Table{{
		Title: "Records", Columns: []string{"", "records"}, Numbers: []bool{false, true},
		Rows: [][]string{{"read", n(s.Read)}, {"written", n(s.Written)}, {"rejected", n(s.Rejected)},
			{"superseded", n(s.Superseded)}},
	}}
	if c := s.Compared; c != nil {
		p.Tables = append(p.Tables, page.Table{Title: "Comparison", Columns: []string{"", "rows"},
			Numbers: []bool{false, true},
			Rows: [][]string{{"compared", n(c.Compared)}, {"missing", n(c.Missing)}, {"different", n(c.Different)},
				{"surplus", n(c.Surplus)}}})
	}
	if len(s.Reasons) > 0 {
		t := page.Table{Title: "Rejected", Columns: []string{"code", "records", "first"}, Numbers: []bool{false, true}}
		for _, r := range s.Reasons {
			t.Rows = append(t.Rows, []string{r.Code, n(r.Count), fmt.Sprintf("record %d of %s: %s", r.First.Record, r.First.File,
				r.First.Message)})
		}
		p.Tables = append(p.Tables, t)
	}
	t := page.Table{Title: "Shards", Columns: []string{"shard", "ranges", "rows", "written", "superseded", "rejected",
		"requests", "throttled", "attempts", "time", "by"}, Numbers: []bool{true, true, true, true, true, true, true, true,
		true, true}}
	for i, r := range shards {
		t.Rows = append(t.Rows, []string{strconv.Itoa(i), strconv.Itoa(len(j.Plan.Shards[i].Ranges)), n(r.From), n(r.Written),
			n(r.Superseded), n(r.Rejected), n(r.Requests), n(r.Throttled),
			strconv.Itoa(r.Attempts), shortTime(r.Ended.Sub(r.Started).Seconds()), r.By})
	}
	p.Tables = append(p.Tables, t)
	var b bytes.Buffer
	err := page.Write(&b, p)
	return b.Bytes(), err
}

func shortTime(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	if d > 10*time.Second {
		return d.Round(time.Second).String()
	}
	return d.Round(10 * time.Millisecond).String()
}
