package bottleneck

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
)

func at(ms int) time.Time { return time.Unix(1000, 0).Add(time.Duration(ms) * time.Millisecond) }

func TestMeterSumsTimePerWord(t *testing.T) {
	m := NewMeter(Options{})
	m.Note(at(0), Reader, false)
	conformance.Equal(t, m.Now(), Reader, "before the first window has ended")
	m.Note(at(100), Partition, false)
	m.Note(at(700), Link, false)
	conformance.Equal(t, m.Now(), Partition, "most of the window")
	m.Note(at(1000), Partition, false)
	m.End(at(1000))
	parts := m.Parts()
	want := []Part{{Partition, 0.6, 0.6}, {Link, 0.3, 0.3}, {Reader, 0.1, 0.1}}
	conformance.MustEqual(t, len(parts), len(want), "%+v", parts)
	for i, p := range parts {
		conformance.True(t, p.Word == want[i].Word && math.Abs(p.Seconds-want[i].Seconds) <= 1e-9 &&
			math.Abs(p.Share-want[i].Share) <= 1e-9, "%+v, want %+v", p, want[i])
	}
}

func TestCPUCountsOnlyWhileProcessorsAreBusy(t *testing.T) {
	used := 0.0
	m := NewMeter(Options{Used: func() float64 { return used }, Processors: 2})
	m.Note(at(0), Link, false)
	m.Note(at(100), Partition, false)
	m.Note(at(300), Reader, false)
	used = 0.95
	m.Note(at(500), Disk, false) // 0.95 of 1 CPU second
	used = 1.5
	m.Note(at(1000), Link, false) // 0.55 of 1
	m.End(at(1000))
	got := map[Word]float64{}
	for _, p := range m.Parts() {
		got[p.Word] = math.Round(p.Seconds * 1000)
	}
	conformance.True(t, len(got) == 3 && got[CPU] == 300 && got[Partition] == 200 && got[Disk] == 500, "%v", got)
}

func TestUnsureWordMayCountAsCPU(t *testing.T) {
	for _, unsure := range []bool{false, true} {
		used := 0.0
		m := NewMeter(Options{Used: func() float64 { return used }, Processors: 2})
		m.Note(at(0), Partition, unsure)
		used = 2
		m.Note(at(1000), Reader, false)
		m.End(at(1001))
		want := Partition
		if unsure {
			want = CPU
		}
		got := m.Parts()[0]
		conformance.True(t, got.Word == want && got.Seconds == 1, "unsure %v: %+v", unsure, got)
	}
}

func TestMeterToleratesClockGoingBack(t *testing.T) {
	m := NewMeter(Options{})
	m.Note(at(0), Link, false)
	m.Note(at(400), Reader, false)
	m.Note(at(100), Reader, false)
	m.Note(at(700), Link, false)
	m.End(at(700))
	for _, p := range m.Parts() {
		conformance.True(t, p.Seconds >= 0, "%+v", p)
	}
	d := m.Due(at(0))
	conformance.True(t, d >= 0, "%v", d)
}

func TestMeterNotesMayBeDelayed(t *testing.T) {
	m := NewMeter(Options{})
	conformance.Equal(t, m.Wants(at(0), 10*time.Millisecond), true, "the first one is due at once")
	m.Note(at(0), Link, false)
	conformance.True(t, !m.Wants(at(4), 10*time.Millisecond) && m.Due(at(4)) == 6*time.Millisecond,
		"after 4 of 10 ms it is due in %v", m.Due(at(4)))
	conformance.True(t, m.Wants(at(10), 10*time.Millisecond) && m.Due(at(10)) == window-10*time.Millisecond,
		"after 10 ms the next is due in %v", m.Due(at(10)))
}

func TestEachWindowIsReportedOnce(t *testing.T) {
	var told Spent
	m := NewMeter(Options{Each: func(_ time.Time, s *Spent) {
		for w, d := range s {
			told[w] += d
		}
	}})
	for i := range 100 {
		m.Note(at(70*i), Words()[i%len(Words())], false)
	}
	m.End(at(7000))
	conformance.Equal(t, told, m.total, "told of")
	sum := time.Duration(0)
	for _, d := range told {
		sum += d
	}
	conformance.Equal(t, sum, 7*time.Second, "sum")
}

func TestEveryWordHasNameReasonAndAdvice(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range Words() {
		conformance.True(t, !seen[w.String()] && w.String() != "" && w.Reason() != "" && w.Advice() != "",
			"word %d: %q, %q, %q", w, w, w.Reason(), w.Advice())
		seen[w.String()] = true
		conformance.Equal(t, Parse(w.String()), w, "%v read back", w)
	}
	conformance.Equal(t, len(seen), int(count)-1, "words listed")
	conformance.True(t, Parse("") == None && Parse("nothing") == None, "a word was made of nothing")
}

func TestWaitForInputsBeforeFirstNoteCounts(t *testing.T) {
	for _, tt := range []struct {
		name    string
		seconds int
		used    float64 // CPU seconds, on two processors
		want    []Part
	}{{"an input that comes late", 3, 1, []Part{{Reader, 3, 0.75}, {Link, 1, 0.25}}},
		{"one that takes all processors", 3, 6, []Part{{CPU, 3, 0.75}, {Link, 1, 0.25}}},
		{"one that comes at once", 0, 0, []Part{{Link, 1, 1}}}} {
		var told Spent
		var last time.Time
		m := NewMeter(Options{Processors: 2, Used: func() float64 { return 0 }, Each: func(begun time.Time, s *Spent) {
			conformance.Equal(t, begun.Before(last), false, "%s: %v is told after %v", tt.name, begun, last)
			last = begun
			told.Add(s)
		}})
		m.Before(at(-1000*tt.seconds-300), at(-300), tt.used)
		m.Note(at(0), Link, false)
		m.End(at(1000))
		conformance.Same(t, m.Parts(), tt.want, "%s", tt.name)
		conformance.Equal(t, told, m.total, "%s: told of", tt.name)
	}
}

func TestEveryWordHasTuningSection(t *testing.T) {
	text := conformance.Try(os.ReadFile(filepath.Join("..", "..", "docs", "tuning.md"))).Must(t)
	var headings, words []string
	_, section, _ := strings.Cut(string(text), "\n## What limits a load\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		if h, ok := strings.CutPrefix(line, "### "); ok {
			headings = append(headings, strings.TrimSpace(h))
		}
	}
	for _, w := range Words() {
		words = append(words, w.String())
	}
	conformance.Same(t, headings, words, "the sections of docs/tuning.md")
}
