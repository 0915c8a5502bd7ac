package report

import (
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"example.com/tsimport/internal/atomicfile"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/page"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/bottleneck"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/rundir"
)

// Write writes the page into the run folder and returns its path.
func Write(r *pipeline.Report) (path string, err error) {
	path = filepath.Join(r.RunDir, rundir.PageFile)
	err = atomicfile.Write(path, atomicfile.Options{Perm: 0o600},
		func(w io.Writer) error { return page.Write(w, Page(r)) })
	if err != nil {
		return "", fmt.Errorf("write the load's report: %w", err)
	}
	return path, nil
}

func Page(r *pipeline.Report) *page.Page {
	p := &page.Page{Title: "Load into " + r.Table, State: r.State, Tone: toneOf(r), Facts: facts(r)}
	p.Lead = append(p.Lead, fmt.Sprintf("%s to %s.", inputs(r.Inputs), r.Target))
	if r.Error != "" {
		p.Lead = append(p.Lead, "It failed: "+r.Error)
	}
	if t := r.Timeline; t != nil && len(t.Points) > 0 {
		p.Charts = charts(r, t)
		if len(t.Heat.Partitions) > 1 && len(t.Heat.Counts) > 0 {
			p.Heat = &page.Heat{Title: "Rows written by partition", Unit: "rows/s", Every: t.Heat.Every.Seconds(),
				Partitions: t.Heat.Partitions, Counts: t.Heat.Counts}
		}
	}
	p.Tables = []page.Table{ledgerTable(r), requests(r), settings(r), schema(r)}
	if len(r.LimitedBy) > 0 {
		p.Tables = append(p.Tables, limits(r))
	}
	if len(r.HotKeys) > 0 {
		p.Tables = append(p.Tables, hotKeys(r))
	}
	return p
}

func toneOf(r *pipeline.Report) page.Tone {
	switch r.ExitCode {
	case exitcode.OK:
		return page.Good
	case exitcode.Failed:
		return page.Bad
	}
	return page.Warning
}

// shownInputs is the maximum number of inputs that are named.
const shownInputs = 5

func inputs(names []string) string {
	if len(names) <= shownInputs {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shownInputs], ", "), len(names)-shownInputs)
}

func facts(r *pipeline.Report) []page.Fact {
	sent := max(r.RowsSent, 1)
	all := []page.Fact{
		{Name: "rows written", Value: words.Grouped(r.Written), Note: "of " + words.Grouped(r.Read) + " read"},
		{Name: "rows a second", Value: words.Grouped(int64(r.RowsPerSecond)), Note: "in " + seconds(r.Seconds)},
		{Name: "rejected", Value: words.Grouped(r.Rejected)},
		{Name: "throttled", Value: fmt.Sprintf("%.2f %%", 100*float64(r.Throttled)/float64(sent)),
			Note: words.Grouped(r.Throttled) + " rows sent again"},
		{Name: "partitions", Value: strconv.Itoa(r.Partitions), Note: strconv.Itoa(r.PartitionsUsed) + " used by this load"},
		{Name: "peak memory", Value: words.Bytes(r.PeakRSSBytes), Note: words.Bytes(r.SpilledBytes) + " spilled"},
	}
	if r.DryRun {
		all[0] = page.Fact{Name: "dry run", Value: words.Grouped(r.Unfinished), Note: "rows would be written"}
	}
	return all
}

func charts(r *pipeline.Report, t *ledger.Timeline) []page.Chart {
	every := t.Every.Seconds()
	// The last interval may be shorter, as it ends with the load.
	last := min(max(r.Seconds-every*float64(len(t.Points)-1), every/20), every)
	over := func(name string, value func(*ledger.Point) float64, rate bool) page.Series {
		s := page.Series{Name: name, Values: make([]float64, len(t.Points))}
		for i := range t.Points {
			s.Values[i] = value(&t.Points[i])
			switch {
			case rate && i == len(t.Points)-1:
				s.Values[i] /= last
			case rate:
				s.Values[i] /= every
			}
		}
		return s
	}
	written := []page.Series{
		over("written", func(p *ledger.Point) float64 { return float64(p.Final) }, true),
		over("throttled", func(p *ledger.Point) float64 { return float64(p.Throttled) }, true),
	}
	if r.WriteCU > r.Written {
		written = append(written, over("capacity units", func(p *ledger.Point) float64 { return p.Units }, true))
	}
	charts := []page.Chart{
		{Title: "Rows a second", Every: page.Number(every), Series: written},
		{Title: "Rows waiting to be written", Every: page.Number(every), Series: []page.Series{
			over("rows", func(p *ledger.Point) float64 { return float64(p.Queued) }, false),
		}},
		{Title: "Requests a second", Every: page.Number(every), Series: []page.Series{
			over("requests", func(p *ledger.Point) float64 { return float64(p.Requests) }, true),
		}},
		{Title: "Problems, rows a second", Every: page.Number(every), Series: []page.Series{
			over("sent again", func(p *ledger.Point) float64 { return float64(p.Retried) }, true),
			over("partition unavailable", func(p *ledger.Point) float64 { return float64(p.Unavailable) }, true),
			over("rejected", func(p *ledger.Point) float64 { return float64(p.Rejected) }, true),
		}},
	}
	if len(r.LimitedBy) > 0 {
		charts = append(charts, page.Chart{Title: "What limited the load, seconds in each second", Every: page.Number(every),
			Series: limitSeries(r, over)})
	}
	return charts
}

func limitSeries(r *pipeline.Report, over func(string, func(*ledger.Point) float64,
	bool) page.Series) (all []page.Series) {
	for _, l := range r.LimitedBy {
		w := bottleneck.Parse(l.By)
		all = append(all, over(l.By, func(p *ledger.Point) float64 { return p.Limited[w].Seconds() }, true))
	}
	return all
}

func limits(r *pipeline.Report) page.Table {
	t := page.Table{Title: "What limited the load", Columns: []string{"", "share of the time", "", "to load faster"},
		Numbers: []bool{false, true}}
	for _, l := range r.LimitedBy {
		w := bottleneck.Parse(l.By)
		t.Rows = append(t.Rows, []string{l.By, fmt.Sprintf("%.1f %%", 100*l.Share), w.Reason(), w.Advice()})
	}
	return t
}

var nameAndNumber = []bool{false, true}

func ledgerTable(r *pipeline.Report) page.Table {
	return page.Table{Title: "Ledger", Numbers: nameAndNumber, Note: "Read is the sum of the others.", Rows: [][]string{
		{"read", words.Grouped(r.Read)}, {"written", words.Grouped(r.Written)}, {"rejected", words.Grouped(r.Rejected)},
		{"superseded by a later row of the same key", words.Grouped(r.Superseded)},
		{"not written because of --when", words.Grouped(r.ConditionFailed)},
		{"archived because a table no longer holds their period", words.Grouped(r.Archived)},
		{"unfinished", words.Grouped(r.Unfinished)},
	}}
}

func requests(r *pipeline.Report) page.Table {
	rows := [][]string{
		{"requests", words.Grouped(r.Requests)}, {"rows sent, including those sent again", words.Grouped(r.RowsSent)},
		{"rows a request", fmt.Sprintf("%.1f", float64(r.RowsSent)/float64(max(r.Requests, 1)))},
		{"rows sent again", words.Grouped(r.Retried)}, {"throttled", words.Grouped(r.Throttled)},
		{"unavailable", words.Grouped(r.Unavailable)},
		{"capacity units", words.Grouped(r.WriteCU)}, {"bytes read", words.Bytes(r.BytesRead)},
		{"bytes sent", words.Bytes(r.BytesSent)},
		{"readings of the partition map", words.Grouped(r.PartitionReads)},
		{"changes of the partitions", words.Grouped(r.Recuts)},
		{"until every partition had rows", seconds(r.LastLaneSeconds)}, {"rows spilled", words.Grouped(r.SpilledRows)},
		{"CPU", seconds(r.CPUSeconds)},
	}
	return page.Table{Title: "Requests and means", Numbers: nameAndNumber, Rows: rows}
}

func settings(r *pipeline.Report) page.Table {
	rows := [][]string{{"command", r.Command}, {"target", r.Target}, {"table", r.Table}, {"order", r.Order},
		{"started", r.Started.Format(time.RFC3339)}, {"run folder", r.RunDir}}
	if r.Created {
		rows = append(rows, []string{"table made", "yes"})
	}
	return page.Table{Title: "Settings", Rows: rows}
}

func schema(r *pipeline.Report) page.Table {
	t := page.Table{Title: "Columns", Columns: []string{"name", "type", "from"}}
	for _, c := range r.Schema {
		from, kind := c.Source, c.Type
		if c.Expression != "" {
			from = "= " + c.Expression
		}
		if c.Key {
			kind += ", key"
		}
		if c.Inferred {
			kind += ", inferred"
		}
		t.Rows = append(t.Rows, []string{c.Name, kind, from})
	}
	return t
}

func hotKeys(r *pipeline.Report) page.Table {
	t := page.Table{Title: "Hot spots", Columns: []string{"column", "value", "share of rows"},
		Numbers: []bool{false, false, true}, Note: "A single value of the partition key is never split, so it limits the " +
			"load, regardless of the table's capacity."}
	for _, h := range r.HotKeys {
		t.Rows = append(t.Rows, []string{h.Column, h.Value, fmt.Sprintf("%.1f %%", 100*h.Share)})
	}
	return t
}

func seconds(s float64) string {
	if s < 60 {
		return fmt.Sprintf("%.1f s", s)
	}
	return time.Duration(s * float64(time.Second)).Round(time.Second).String()
}
