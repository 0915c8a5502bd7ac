package commands

import (
	"context"
	"io"
	"log/slog"
	"os"
	"time"

	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline/bottleneck"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/input"
)

// The formats of stderr.
const (
	logText = "text"
	logJSON = "json"
)

// logFormatVariable selects the format of messages on stderr: text, or json, one object per line (docs/observing.md).
const logFormatVariable = "TSIMPORT_LOG_FORMAT"

// formatLog sets the format from the environment before arguments are parsed, so that errors in them have that format.
func formatLog(show *display, args []string) error {
	switch format := os.Getenv(logFormatVariable); {
	case format != "" && format != logText && format != logJSON:
		return usagef("%s=%q: want text or json", logFormatVariable, format)
	case format == logJSON && len(args) > 1:
		show.logJSON(args[1])
	}
	return nil
}

func (d *display) logJSON(command string) {
	if d.log != nil {
		return
	}
	d.terminal = false // nothing is repainted
	d.log = slog.New(slog.NewJSONHandler(asIs{d}, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: shownAttr}))
	if command != "" {
		d.log = d.log.With("command", command)
	}
}

// asIs writes to a display without interpreting the text.
type asIs struct{ d *display }

func (a asIs) Write(b []byte) (int, error) { return len(b), a.d.put(b) }

// shownAttr returns the logged form of an attribute: times in UTC, texts without secrets and control characters.
func shownAttr(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindTime:
		return slog.String(a.Key, a.Value.Time().UTC().Format("2006-01-02T15:04:05.000Z"))
	case slog.KindString:
		return slog.String(a.Key, printableText(input.RedactText(a.Value.String())))
	default:
		return a
	}
}

// The log events. Their fields are a contract (docs/observing.md).
const (
	eventMessage  = "message"
	eventWarning  = "warning"
	eventProgress = "progress"
	eventReject   = "reject"
	eventError    = "error"
	eventSummary  = "summary"
)

func (d *display) event(level slog.Level, event, text string, more ...slog.Attr) {
	d.log.LogAttrs(context.Background(), level, text, append([]slog.Attr{slog.String("event", event)}, more...)...)
}

func (d *display) of(load string) *display {
	one := newDisplay(io.Discard)
	if d.log == nil {
		one.load, one.board = load, d.board
		one.say = func(kind words.Kind, line string) { d.tell(words.Plain, load+": "+string(kind)+line) }
	} else {
		one.log = d.log.With("load", load)
	}
	return one
}

func (s *screen) logProgress() {
	p := &s.progress
	fields := []slog.Attr{
		slog.Int64("read", p.Ended.Read.Load()), slog.Int64("written", p.Ended.Written.Load()),
		slog.Int64("rejected", p.Ended.Rejected.Load()), slog.Int64("superseded", p.Ended.Superseded.Load()),
		slog.Int64("condition_failed", p.Ended.ConditionFailed.Load()), slog.Int64("archived", p.Ended.Archived.Load()),
		slog.Int64("throttled", p.Throttled.Load()), slog.Int64("bytes_read", p.BytesRead.Load()),
		slog.Float64("rows_per_second", float64(max(p.Ended.Written.Load()-s.written, 0))/time.Since(s.start).Seconds()),
	}
	if total := p.BytesTotal.Load(); total > 0 {
		fields = append(fields, slog.Int64("bytes_total", total))
	}
	if n, since, known := p.Lag(); known {
		fields = append(fields, slog.Int64("behind_changes", n), slog.Float64("behind_seconds", since.Seconds()))
	}
	if w := bottleneck.Word(p.Hindrance.LimitedBy.Load()); w != bottleneck.None {
		fields = append(fields, slog.String("limited_by", w.String()))
	}
	s.w.event(slog.LevelInfo, eventProgress, s.progressText(), fields...)
}

// rejectsLogged limits the rejects logged per load; the run folder has all.
const rejectsLogged = 1000

// reject queues a rejected record for the log, so that the load does not wait for the log's reader.
func (s *screen) reject(r *rundir.Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rejects++; s.rejects <= rejectsLogged {
		s.rejected = append(s.rejected, *r)
	}
}

func (s *screen) logRejects() {
	s.mu.Lock()
	rejected, all := s.rejected, s.rejects
	s.rejected = nil
	s.mu.Unlock()
	for _, r := range rejected {
		fields := []slog.Attr{slog.String("code", r.Code), slog.String("file", r.File), slog.Int64("record", r.Record)}
		if r.Line > 0 {
			fields = append(fields, slog.Int64("line", r.Line))
		}
		if r.Column != "" {
			fields = append(fields, slog.String("column", r.Column))
		}
		if r.Value != "" {
			fields = append(fields, slog.String("value", r.Value))
		}
		s.w.event(slog.LevelWarn, eventReject, r.Message, fields...)
	}
	if all > rejectsLogged && !s.saidMore {
		s.saidMore = true
		s.say.Warn("rejects after the first %s are not logged; the run folder has them all", words.Grouped(rejectsLogged))
	}
}
