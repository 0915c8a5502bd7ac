package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/bottleneck"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/transfer/verify"
)

// screen shows a load on stderr.
type screen struct {
	w        *display
	say      words.Say // nil hides progress
	dryRun   bool
	progress ledger.Progress
	existed  bool // whether the table existed
	start    time.Time
	began    time.Time // start of the load, after planning
	written  int64     // rows written before this attempt
	read     int64     // input bytes read before this attempt; some of them are read again
	done     int64     // input bytes done before this attempt
	final    int64     // records final before this attempt
	marks    []mark    // progress in the last seconds
	stopping chan struct{}
	arrived  func() // ends awaitInputs
	stopped  sync.WaitGroup

	mu       sync.Mutex
	rejects  int             // number of rejected records queued for the log so far
	rejected []rundir.Reason // rejected records to be logged
	saidMore bool            // whether the user was told that further ones are not logged
}

func newScreen(c *call) *screen {
	return &screen{w: c.show, say: c.say, dryRun: c.of.DryRun, start: time.Now(), stopping: make(chan struct{})}
}

func (s *screen) attach(cfg *pipeline.Config) {
	w := &cfg.Watch
	w.Progress, w.OnPlan, w.OnHotKey, w.OnWait, cfg.Resume.OnResume = &s.progress, s.plan, s.hotKey, s.waiting, s.resume
	if s.w.log != nil {
		w.OnReject = s.reject
	}
	s.awaitInputs()
}

func (s *screen) waiting(why string, most time.Duration) {
	s.say.Line("waiting: %s; retrying for up to %v", why, most)
}

func (s *screen) plan(p *plan.Plan) {
	for _, n := range p.Notes {
		s.say.Line("%s", n)
	}
	for _, w := range p.Warnings {
		say := s.say
		if slices.Contains(p.Changed, w) {
			say = s.w.say // shown despite --quiet, because the rows are written anyway
		}
		say.Warn("%s", w)
	}
	if s.arrived != nil {
		s.arrived()
	}
	s.existed = !p.Create
	verb := "table"
	switch {
	case p.Tables != nil:
		verb = "tables"
	case p.Create:
		verb = "new table"
	}
	s.say.Line("%s %s: %s", verb, p.Schema.Table, schemaText(p))
	s.begin()
}

func (s *screen) begin() {
	s.began = time.Now()
	if s.w.board != nil {
		s.w.board.add(s)
	}
	if s.say != nil {
		s.stopped.Add(1)
		go s.watch()
	}
}

// hotKey warns early of a frequent partition-key value, whose rows cannot be spread.
func (s *screen) hotKey(h ledger.ReportHotKey, rows int64) {
	if h.Bytes > 0 {
		s.say.Warn("the rows read so far that have %s as %s, the partition key, take %s; %s. %s advise proposes a key that "+
			"divides them", printable(h.Value), printable(h.Column), words.Bytes(h.Bytes), valueTooLarge, commandName())
		return
	}
	s.say.Warn("%s of the %s rows read so far have %s as %s, the partition key; %s. %s advise proposes a key that spreads",
		allOr(h.Share), words.Grouped(rows),
		printable(h.Value), printable(h.Column), oneValue, commandName())
}

// valueTooLarge is the vendor's advice on the size of a partition-key value.
const valueTooLarge = "one value should stay below 10 GB"

// oneValue explains a partition-key value with most of the rows.
const oneValue = "one value is never split, so a single partition takes them all, however many the table has"

func allOr(share float64) string {
	if share == 1 {
		return "all"
	}
	return fmt.Sprintf("%d%%", int(100*share)) // 99.9 % is not 100
}

func (s *screen) resume(r keep.Resumed) {
	s.written, s.read, s.final = r.Written, r.BytesRead, r.Final
	s.done = doneOf(r.BytesRead, r.Final, r.Read)
	s.say.Line("resuming run %s: %s of %s rows read are final (attempt %d, begun %s; --fresh starts over)",
		r.RunDir, words.Grouped(r.Final), words.Grouped(r.Read), r.Attempt, r.Since.Local().Format("2006-01-02 15:04:05"))
	if n := len(r.Rereads); n > 0 {
		more := ""
		if n > 1 {
			more = fmt.Sprintf(" and %d more", n-1)
		}
		s.say.Line("%s%s can only be read from the beginning: records before the resume point are read again and skipped",
			r.Rereads[0], more)
	}
}

// shownColumns limits the columns in the schema's line.
const shownColumns = 12

func schemaText(p *plan.Plan) string {
	var parts []string
	for i, c := range p.Schema.Columns {
		text := c.Name + " " + c.Type.String() + plan.UnitText(c.Type.String(), c.Unit)
		if i < len(p.Schema.Key) {
			text += " (key)"
		}
		if expr := p.Expression(i); expr != "" {
			text += " = " + expr
		} else if i > 0 && i == p.Schema.Numbered {
			text += " (numbered by the service)"
		} else if c.Source != c.Name {
			text += fmt.Sprintf(" (from %s)", c.Source)
		}
		parts = append(parts, text)
	}
	if len(parts) > shownColumns {
		parts = append(parts[:shownColumns], fmt.Sprintf("… and %d more", len(parts)-shownColumns))
	}
	if p.Wide {
		parts = append(parts, "and the cells of each row")
	}
	return strings.Join(parts, ", ")
}

func (s *screen) report(r *pipeline.Report, mode table.Mode, look string) {
	written := "written"
	if mode == table.Delete {
		written = "deleted"
	}
	counts := fmt.Sprintf("%s read, %s %s, %s rejected, %s superseded", words.Grouped(r.Read), words.Grouped(r.Written),
		written, words.Grouped(r.Rejected), words.Grouped(r.Superseded))
	counts = plus(plus(counts, r.ConditionFailed, "left by --when"), r.Archived, "archived")
	counts = plus(counts, r.Unfinished, "unfinished")
	elapsed := round(time.Duration(r.Seconds * float64(time.Second)))
	if r.DryRun {
		s.say.Line("dry run: %s read, %s would be %s, %s would be rejected, in %v", words.Grouped(r.Read),
			words.Grouped(r.Unfinished), written, words.Grouped(r.Rejected), elapsed)
	} else {
		s.say.Line("%s: %s in %v (%s rows/s, %s sent in %s)", r.State, counts, elapsed,
			words.Grouped(int64(r.RowsPerSecond)), words.Bytes(r.BytesSent), counted(r.Requests, "request"))
	}
	sayTables(s.say, r)
	saySpread(s.say, r)
	sayNumbers(s.say, r)
	if r.Archived > 0 && r.Written+r.Superseded == 0 && r.ExitCode == exitcode.OK && !r.DryRun {
		s.say.Warn("all rows went to the archive, none to a table")
	}
	if r.Read == 0 && r.ExitCode == exitcode.OK {
		made := ""
		if !r.Created && !s.existed {
			made = "; the table was not created"
		}
		s.say.Warn("the input holds no records%s", made)
	}
	sayRejects(s.say, r.RejectReasons)
	sayBad(s.say, r)
	s.next(r, look)
}

// next names the files of the run and the possible next steps.
func (s *screen) next(r *pipeline.Report, look string) {
	summary := filepath.Join(r.RunDir, rundir.SummaryFile)
	_, err := os.Stat(summary)
	gone := err != nil
	if gone {
		s.say.Warn("%s is missing: the run folder was removed, and with it the record of this load", summary)
	}
	if n := len(r.RejectsFiles); n > 1 && !gone {
		s.say.Line("rejected rows: %s, reasons: %s", strings.Join(r.RejectsFiles[:n-1], ", "), r.RejectsFiles[n-1])
	}
	switch copied := copies(r); {
	case len(r.RejectsFiles) < 2 || r.DryRun || gone:
	case r.Changes:
		s.say.Line("correct that change in the input and give the command with --fresh: changes may be repeated")
	case copied && r.ReturnedKeys == "":
		s.say.Line("after correcting the rows in the source: give the command again")
	case !copied:
		s.say.Line("after correcting them: %s load --retry-rejects %s", commandName(), suggest.Arg(r.RunDir))
	}
	switch unfinished := r.Unfinished > 0 || r.State == pipeline.StateInterrupted; {
	case r.DryRun || gone || r.Remade:
	case r.ExitCode == exitcode.ErrorLimit && r.Changes:
	case r.ExitCode == exitcode.ErrorLimit:
		s.say.Line("to resume: give the same command with a higher --max-errors; rejected rows of all attempts count")
	case unfinished:
		s.say.Line("to resume: %s resume %s, or give the same command again", commandName(), suggest.Arg(r.RunDir))
	}
	if r.Created && r.Superseded > 0 && !r.Changes { // in an existing table, files bring new versions of its rows
		s.say.Line("at least %s shared the key of others, and each key keeps one; if these should be rows of their own, the "+
			"key lacks a column: %s check --unique shows them", counted(r.Superseded, "record"), commandName())
	}
	if r.Written > 0 && look != "" {
		s.say.Line("see the rows: %s", look)
	}
	if !gone {
		s.say.Line("summary: %s", summary)
	}
}

// briefOf returns the result of a load in one line, with the counts and the first reason.
func briefOf(r *pipeline.Report) string {
	what := r.State + ": " + countsText(countsOfReport(r))
	switch {
	case r.DryRun:
		what = fmt.Sprintf("dry run: %s read, %s would be written, %s would be rejected", words.Grouped(r.Read),
			words.Grouped(r.Unfinished), words.Grouped(r.Rejected))
	case r.ExitCode == exitcode.ErrorLimit && r.Changes:
		what += "; a change cannot be applied, and none after it was"
	case r.ExitCode == exitcode.ErrorLimit:
		what += "; too many rows were rejected (--max-errors)"
	case len(r.BadInputs) > 0:
		what += "; " + ledger.BadText(r.BadInputs)
		if r.ExitCode == exitcode.Failed {
			what += "; so many are bad that the flags or the place may be wrong"
		}
	}
	if v, ok := r.Verify.(*verify.Result); ok && !v.OK {
		what += "; " + firstDifference(v)
	}
	return brief(what, r.RejectReasons)
}

// brief appends the first reason of rejected records to a line.
func brief(what string, reasons []rundir.ReasonCount) string {
	if len(reasons) > 0 {
		what += "; the first: " + reasonText(&reasons[0].First)
	}
	return what
}

// shownReasons limits the set-aside inputs, and the codes of rejected rows, listed at the end. The summary has all.
const shownReasons = 5

func sayBad(say words.Say, r *pipeline.Report) {
	for i, b := range r.BadInputs {
		if i == shownReasons {
			say.Line("… and %d more inputs are set aside, see the summary", len(r.BadInputs)-i)
			return
		}
		say.Line("set aside: %s: %s", b.Name, b.Reason)
	}
}

// sayRejects lists the codes of rejected rows, with counts and the first reason.
func sayRejects(say words.Say, reasons []rundir.ReasonCount) {
	for i, c := range reasons {
		if i == shownReasons {
			say.Line("… and %d more codes, see the summary", len(reasons)-i)
			return
		}
		say.Line("rejected %s with %s; the first: %s", words.Grouped(c.Count), c.Code, reasonText(&c.First))
	}
}

// reasonText formats a reason in one line, with the record's position, the column, the value and the error.
func reasonText(r *rundir.Reason) string {
	text := fmt.Sprintf("%s record %d", input.Redact(r.File), r.Record)
	switch {
	case r.Key != "": // table rows have no line
		text += ", at " + r.Key + " or after it"
	case r.Line > 0:
		text = fmt.Sprintf("%s:%d", input.Redact(r.File), r.Line)
	}
	if r.Column != "" {
		text += ", column " + r.Column
	}
	text += ": " + r.Message
	if r.Value != "" {
		text += fmt.Sprintf(" (%q)", r.Value)
	}
	return printable(text)
}

// shownTables limits the tables listed at the end. The summary has all of them.
const shownTables = 60

func sayTables(say words.Say, r *pipeline.Report) {
	for i, t := range r.Tables {
		if i == shownTables {
			say.Line("… and %d more tables, see the summary", len(r.Tables)-i)
			return
		}
		text := "table " + t.Name
		if t.Archived > 0 {
			text = "archive " + t.Name
		} else if t.Created {
			text = "new table " + t.Name
		}
		if t.Class > 0 {
			text += fmt.Sprintf(" (class %d)", t.Class)
		}
		var counts []string
		for _, c := range []struct {
			n    int64
			what string
		}{{t.Written, "written"}, {t.Rejected, "rejected"}, {t.Superseded, "superseded"},
			{t.ConditionFailed, "left by --when"}, {t.Archived, "archived"}, {t.Unfinished, "would be written"}} {
			if c.n > 0 {
				counts = append(counts, words.Grouped(c.n)+" "+c.what)
			}
		}
		if len(counts) == 0 {
			counts = []string{"no rows"}
		}
		say.Line("%s: %s", text, strings.Join(counts, ", "))
	}
}

// refusedMuch is the share of refused rows above which refusals are reported. Lanes need a few to find their rates.
const refusedMuch = 0.02

// rowsToSpread is the minimum number of rows that should have used several partitions.
const rowsToSpread = 10_000

// saySpread reports notable facts about the rows' use of partitions, memory and disk.
func saySpread(say words.Say, r *pipeline.Report) {
	if n := len(r.Indexes); n > 0 && r.IndexWriteCU > 0 {
		cost := "cost"
		if r.DryRun {
			cost = "would cost"
		}
		say.Line("the %s of the table %s at least another %s write units and %s read units", indexesText(n), cost,
			words.Grouped(r.IndexWriteCU), words.Grouped(r.IndexReadCU))
	}
	if len(r.IndexesMade) > 0 {
		say.Line("created the %s of the table: %s", indexesText(len(r.IndexesMade)), strings.Join(r.IndexesMade, ", "))
	}
	if text := limitNote(r); text != "" {
		say.Line("%s", text)
	}
	if text := preSplitNote(r); text != "" {
		say.Line("%s", text)
	}
	if r.Slowest != nil {
		say.Line("%s", slowestNote(r.Slowest))
	}
	for _, h := range r.HotKeys {
		if h.Share == 1 {
			say.Line("hot spot: all rows have %s %s; %s", h.Column, h.Value, oneValue)
			continue
		}
		size := ""
		if h.Bytes > 0 {
			size = fmt.Sprintf(", %s: %s", words.Bytes(h.Bytes), valueTooLarge)
		}
		say.Line("hot spot: %s %s has %.0f%% of the rows%s; one partition-key value is never split", h.Column, h.Value,
			h.Share*100, size)
	}
	if r.Partitions > 1 && r.Written > 0 {
		say.Line("%s", partitionsNote(r))
	}
	if r.Partitions > 1 && r.PartitionsUsed == 1 && r.Written >= rowsToSpread {
		say.Warn("all rows went to one partition, so the capacity of the others was not used")
	}
	sayTrouble(say, r)
}

func sayTrouble(say words.Say, r *pipeline.Report) {
	if r.EmptyLines > 0 {
		say.Line("%s skipped", counted(r.EmptyLines, "empty line"))
	}
	if r.SpilledRows > 0 {
		say.Line("memory was full: %s rows were spilled to disk (%s written, at most %s at a time)",
			words.Grouped(r.SpilledRows), words.Bytes(r.SpilledBytes), words.Bytes(r.PeakSpillBytes))
	}
	if r.ReplayedAnswers > 0 {
		say.Warn("%d responses were repeated for other requests: something on the network repeats responses, so rows "+
			"reported as written may be missing; compare the table with tsimport verify", r.ReplayedAnswers)
	}
	if r.UncheckedAnswers > 0 {
		say.Warn("%s of the service had no checksum (x-ots-contentmd5), perhaps removed by a proxy, so damage "+
			"would not be noticed", counted(r.UncheckedAnswers, "response"))
	}
	if r.SpillError != "" {
		say.Warn("rows could not be spilled to disk, so reading waited for memory: %s; see TMPDIR and --memory", r.SpillError)
	}
	for _, refused := range []struct {
		rows int64
		why  string
	}{
		{r.Throttled, "refused for capacity"}, {r.Unavailable, "refused because their partition was unavailable,"},
	} {
		if share := float64(refused.rows) / float64(max(r.RowsSent, 1)); share > refusedMuch {
			say.Line("%.0f%% of the rows sent were %s and sent again", 100*share, refused.why)
		}
	}
}

// worthALimit is the minimum duration, in seconds, of a load whose bottleneck is reported.
const worthALimit = 1

func copies(r *pipeline.Report) bool { return len(r.Arguments) > 0 && r.Arguments[0] == "copy" }

// limitNote names the load's main bottleneck and a remedy. It returns "" for a short load or an unknown bottleneck.
func limitNote(r *pipeline.Report) string {
	if len(r.LimitedBy) == 0 || r.Seconds < worthALimit {
		return ""
	}
	most := r.LimitedBy[0]
	w := bottleneck.Parse(most.By)
	reason, advice := w.Reason(), w.Advice()
	if w == bottleneck.Reader && copies(r) {
		reason, advice = "the source gives no more rows", "raise its reserved read throughput, or --max-rcu if it is given"
	}
	if w == bottleneck.Index && len(r.Indexes) > 0 {
		reason += " (" + shortList(r.Indexes) + ")"
	}
	return fmt.Sprintf("limited by %s %s of the time: %s; to load faster, %s", most.By, allOr(most.Share), reason, advice)
}

func indexesText(n int) string {
	if n == 1 {
		return "secondary index"
	}
	return fmt.Sprintf("%d secondary indexes", n)
}

func slowestNote(p *ledger.ReportSlowest) string {
	name := fmt.Sprintf("partition %d", p.Partition)
	if p.Table != "" {
		name += " of table " + p.Table
	}
	if p.From != "" {
		name += " from " + p.From
	}
	seconds := func(s float64) time.Duration { return round(time.Duration(s * float64(time.Second))) }
	text := fmt.Sprintf("slowest: %s; its rows waited for %v, those of most others for %v at most; %s rows, %s a second",
		name, seconds(p.Waiting), seconds(p.OthersWaiting), words.Grouped(p.Rows),
		words.Grouped(int64(float64(p.Rows)/p.Waiting)))
	return plus(plus(text, p.Throttled, "refused for capacity"), p.Unavailable, "while it was unavailable")
}

// preSplitNote reports whether a new table kept its initial ranges.
func preSplitNote(r *pipeline.Report) string {
	switch s := r.PreSplit; {
	case s == nil:
		return ""
	case s.Refused != "":
		return fmt.Sprintf("the service refused a table with %d ranges (%s), so it was created with one", s.Ranges, s.Refused)
	case s.Heard < s.Ranges:
		return fmt.Sprintf("the table was requested with %d ranges, but the service reports %d; for a large load, ask the "+
			"vendor's support to pre-split the table", s.Ranges, s.Heard)
	default:
		return fmt.Sprintf("the table began with %d ranges of keys", s.Heard)
	}
}

// partitionsNote reports which partitions received the rows. After a split, only new partitions with rows count.
func partitionsNote(r *pipeline.Report) string {
	recut := ""
	if r.Recuts > 0 {
		recut = fmt.Sprintf(", their bounds changed %s", times(r.Recuts))
	}
	begun := fmt.Sprintf("the last of them reached after %v", round(time.Duration(r.LastLaneSeconds*float64(time.Second))))
	switch r.PartitionsUsed {
	case 0:
		return fmt.Sprintf("%d partitions at the end, none of which got a row since%s", r.Partitions, recut)
	case r.Partitions:
		return fmt.Sprintf("written to %d partitions, %s%s", r.Partitions, begun, recut)
	}
	return fmt.Sprintf("written to %d of %d partitions (others got no row), %s%s", r.PartitionsUsed, r.Partitions,
		begun, recut)
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return words.Grouped(n) + " times"
}
