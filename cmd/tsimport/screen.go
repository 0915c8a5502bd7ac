package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"tsimport/pipeline"
	"tsimport/runfolder"
)

// screen shows a load to the user, on stderr.
type screen struct {
	w        io.Writer
	quiet    bool
	verbose  bool
	terminal bool
	progress pipeline.Progress
	again    string // what to know before loading again
	existed  bool   // the table
	start    time.Time
	stopping chan struct{}
	stopped  sync.WaitGroup
}

func newScreen(c *cli.Context, w io.Writer) *screen {
	s := &screen{w: w, quiet: c.Bool("quiet"), verbose: c.Bool("verbose"), start: time.Now(), stopping: make(chan struct{})}
	if c.String("mode") == "put" && c.String("condition") == "ignore" {
		s.again = ": rows that are there already are written once more, with the same values"
	}
	if f, ok := w.(*os.File); ok {
		s.terminal = term.IsTerminal(int(f.Fd()))
	}
	return s
}

func (s *screen) line(format string, a ...any) {
	if !s.quiet {
		fmt.Fprintf(s.w, "tsimport: "+format+"\n", a...)
	}
}

// plan shows what is about to be done, then begins to show progress.
func (s *screen) plan(p *pipeline.Plan) {
	for _, n := range p.Notes {
		s.line("%s", n)
	}
	for _, w := range p.Warnings {
		s.line("warning: %s", w)
	}
	s.existed = !p.Create
	verb := "table"
	if p.Create {
		verb = "new table"
	}
	s.line("%s %s: %s", verb, p.Schema.Table, schemaText(p, s.verbose))
	if !s.quiet {
		s.stopped.Add(1)
		go s.watch()
	}
}

// shownColumns bounds the schema's line; --verbose shows all.
const shownColumns = 12

func schemaText(p *pipeline.Plan, all bool) string {
	var parts []string
	for i, c := range p.Schema.Columns {
		text := c.Name + " " + c.Type.String()
		if i < len(p.Schema.Key) {
			text += " (key)"
		}
		if c.Source != c.Name {
			text += fmt.Sprintf(" (from %s)", c.Source)
		}
		parts = append(parts, text)
	}
	if !all && len(parts) > shownColumns {
		parts = append(parts[:shownColumns], fmt.Sprintf("… and %d more (-v shows all)", len(parts)-shownColumns))
	}
	return strings.Join(parts, ", ")
}

// watch shows progress until the load ends: a bar on a terminal, else a line every few seconds.
func (s *screen) watch() {
	defer s.stopped.Done()
	interval := 5 * time.Second
	if s.verbose {
		interval = time.Second
	}
	show := func() { s.line("%s", s.progressText()) }
	if s.terminal {
		interval = 200 * time.Millisecond
		bar := s.newBar()
		show = func() { s.moveBar(bar) }
		defer func() { _ = bar.Clear() }()
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			show()
		case <-s.stopping:
			return
		}
	}
}

func (s *screen) newBar() *progressbar.ProgressBar {
	return progressbar.NewOptions64(s.progress.BytesTotal.Load(),
		progressbar.OptionSetWriter(s.w), progressbar.OptionShowBytes(true), progressbar.OptionUseIECUnits(true),
		progressbar.OptionSetWidth(20), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
}

func (s *screen) moveBar(bar *progressbar.ProgressBar) {
	bar.Describe(s.counts())
	// A bar that is full clears itself, but rows are still being written then.
	read := s.progress.BytesRead.Load()
	if total := s.progress.BytesTotal.Load(); total > 0 {
		read = min(read, total-1)
	}
	_ = bar.Set64(read)
}

func (s *screen) counts() string {
	p := &s.progress
	rate := float64(p.Written.Load()) / time.Since(s.start).Seconds()
	text := fmt.Sprintf("%s rows, %s rows/s", grouped(p.Written.Load()), grouped(int64(rate)))
	if n := p.Rejected.Load(); n > 0 {
		text += fmt.Sprintf(", %s rejected", grouped(n))
	}
	if n := p.Throttled.Load(); n > 0 {
		text += fmt.Sprintf(", %s throttled", grouped(n))
	}
	if trouble, _ := p.Trouble.Load().(string); trouble != "" {
		text += fmt.Sprintf(", trying again: %.100s", trouble)
	}
	if wait := time.Until(time.UnixMilli(p.Settling.Load())); wait > 0 {
		text += fmt.Sprintf(", waiting up to %v for requests without an answer", round(wait))
	}
	return text
}

func (s *screen) progressText() string {
	p := &s.progress
	text := s.counts()
	read, total := p.BytesRead.Load(), p.BytesTotal.Load()
	text += fmt.Sprintf(", %s read", byteText(read))
	if total > 0 {
		text += fmt.Sprintf(" of %s (%d%%)", byteText(total), read*100/total)
		if read > 0 && read < total {
			left := time.Duration(float64(time.Since(s.start)) * float64(total-read) / float64(read))
			text += fmt.Sprintf(", about %v left", round(left))
		}
	}
	return text
}

// stop ends the progress display.
func (s *screen) stop() {
	close(s.stopping)
	s.stopped.Wait()
}

// report shows how the load ended and what to do next.
func (s *screen) report(r *pipeline.Report, look string) {
	counts := fmt.Sprintf("%s read, %s written, %s rejected, %s superseded", grouped(r.Read), grouped(r.Written), grouped(r.Rejected), grouped(r.Superseded))
	if r.Unfinished > 0 && !r.DryRun {
		counts += fmt.Sprintf(", %s unfinished", grouped(r.Unfinished))
	}
	elapsed := round(time.Duration(r.Seconds * float64(time.Second)))
	if r.DryRun {
		s.line("dry run: %s read, %s would be written, %s would be rejected, in %v", grouped(r.Read), grouped(r.Unfinished), grouped(r.Rejected), elapsed)
	} else {
		s.line("%s: %s in %v (%s rows/s, %s sent in %s requests)", r.State, counts, elapsed,
			grouped(int64(r.RowsPerSecond)), byteText(r.BytesSent), grouped(r.Requests))
	}
	if r.Read == 0 && r.ExitCode == pipeline.ExitOK {
		made := ""
		if !r.Created && !s.existed {
			made = "; the table was not made"
		}
		s.line("warning: the input holds no records%s", made)
	}
	if n := len(r.RejectsFiles); n > 1 {
		s.line("rejected rows: %s, reasons: %s", strings.Join(r.RejectsFiles[:n-1], ", "), r.RejectsFiles[n-1])
	}
	if n := len(r.RejectsFiles); n > 1 && len(r.Schema) <= shownColumns {
		s.line("once they are corrected: %s", retryCommand(r))
	}
	if r.ExitCode == pipeline.ExitErrorLimit {
		s.line("too many rows were rejected; see the reasons, or raise --max-errors")
	}
	if r.Unfinished > 0 && !r.DryRun {
		s.line("to go on, load the same files again%s", s.again)
	}
	if r.Written > 0 {
		s.line("look at the rows: %s", look)
	}
	s.line("summary: %s", filepath.Join(r.RunDir, runfolder.SummaryFile))
}

// retryCommand loads corrected rejects with the types of this load: a sample of the rejects alone may show others.
func retryCommand(r *pipeline.Report) string {
	text := commandName() + " load " + quoteArg(r.RejectsFiles[0]) + " --table " + r.Table
	for _, c := range r.Schema {
		text += " --type " + quoteArg(c.Source+"="+c.Type)
	}
	if r.RejectsEncoding != "" {
		text += " --encoding " + r.RejectsEncoding
	}
	return text + " and the other flags of this load, but --skip-lines and --header-line"
}

func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func byteText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}
