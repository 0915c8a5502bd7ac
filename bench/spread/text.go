package spread

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// The drawing of partitions over time.
const (
	barColumns = 60
	barLines   = 32
)

var blocks = []rune("▁▂▃▄▅▆▇█")

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w) // which keeps the first error
	fmt.Fprintf(out, "%s, %d rows", r.Input, r.Rows)
	if r.Order != "" {
		fmt.Fprintf(out, ", %s", r.Order)
	}
	fmt.Fprintf(out, "; %d partitions of %g write capacity units a second, %g ms a request\n", r.Partitions, r.PartitionWCU, r.LatencyMS)
	if r.SplitsMS > 0 {
		fmt.Fprintf(out, "the table begins with one partition; all are halved %g s after the first row, then every %g s\n", firstSplit.Seconds(), r.SplitsMS/1000)
	}
	if r.Limiter != "" {
		fmt.Fprintf(out, "capacity limits as a %s\n", r.Limiter)
	}
	if r.TableWCU > 0 {
		fmt.Fprintf(out, "the whole table takes at most %g write capacity units a second\n", r.TableWCU)
	}
	if r.InstanceWCU > 0 {
		fmt.Fprintf(out, "the instance takes at most %g write capacity units a second, and refuses whole requests\n", r.InstanceWCU)
	}
	if r.Outage != "" {
		fmt.Fprintf(out, "the service has an outage, %s (seconds, kind, seconds after the first row): a part of the capacity that no load can use\n", r.Outage)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(out, "note: %s\n", n)
	}
	compareAll(out, r.Scenarios, r.SplitsMS > 0)
	for _, s := range r.Scenarios {
		fmt.Fprintf(out, "\n%s\n", s.Name)
		s.about(out, windowed(r.Limiter))
		s.bars(out)
	}
	return out.Flush()
}

// compareAll compares the scenarios, a line each.
func compareAll(out io.Writer, scenarios []*Scenario, splits bool) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	share := "capacity share"
	if splits {
		share = "of allowed" // a share of the partitions with rows says little where most children are empty
	}
	fmt.Fprintf(t, "\n\tseconds\trows\t%s\tthrottled\trequests\tbatch fill\tlost\tpeak memory\t\n", share)
	for _, s := range scenarios {
		memory, stopped, of := "-", "", s.CapacityShare
		if s.PeakRSSBytes > 0 {
			memory = fmt.Sprintf("%d MiB", s.PeakRSSBytes>>20)
		}
		if s.Stopped {
			stopped = "+"
		}
		if splits {
			of = s.AllowedShare
		}
		fmt.Fprintf(t, "%s\t%.1f%s\t%d\t%.4f\t%.2f %%\t%d\t%.2f\t%d\t%s\t\n", s.Name, s.Seconds, stopped, s.Rows, of,
			100*s.ThrottledShare, s.Requests, s.BatchFill, s.Lost, memory)
	}
	t.Flush()
}

// about says what does not fit the table.
func (s *Scenario) about(out io.Writer, windowed bool) {
	if s.Error != "" {
		fmt.Fprintf(out, "  error: %s\n", s.Error)
	}
	if s.Stopped {
		fmt.Fprintf(out, "  stopped after %.1f s\n", s.Seconds)
	}
	if s.PreparationSeconds > 0 {
		fmt.Fprintf(out, "  %.1f s of it to shuffle the file\n", s.PreparationSeconds)
	}
	if s.Verified != "" {
		fmt.Fprintf(out, "  %s\n", s.Verified)
	}
	switch {
	case s.ShareWithBurst <= 0:
	case windowed:
		fmt.Fprintf(out, "  capacity share %.4f if every window that began counts in full\n", s.ShareWithBurst)
	default:
		fmt.Fprintf(out, "  capacity share %.4f if what partitions had saved up before their first row counts too\n", s.ShareWithBurst)
	}
	if s.ShareFromLastLane > 0 {
		fmt.Fprintf(out, "  capacity share %.4f from %.2f s on, when the last partition had a row\n", s.ShareFromLastLane, s.LastLaneSeconds)
	}
	if s.IdealSeconds > 0 {
		fmt.Fprintf(out, "  last row after %.2f s; the partitions would allow %.2f s (%.4f)\n", s.MakespanSeconds, s.IdealSeconds, s.MakespanShare)
	}
	if s.AllowedShare > 0 {
		fmt.Fprintf(out, "  %.4f of what the partitions that served allowed at each moment; the first row after %.2f s\n", s.AllowedShare, s.FirstRowSeconds)
	}
	if s.Loader != nil && s.Loader.Sections > 0 {
		fmt.Fprintf(out, "  read in %d sections out of the order of the file\n", s.Loader.Sections)
	}
	if len(s.Splits) > 0 {
		writeSplits(out, s.Splits)
	}
}

func writeSplits(out io.Writer, splits []Split) {
	var used []float64
	for _, s := range splits {
		if s.UsedMS != nil {
			used = append(used, *s.UsedMS)
		}
	}
	fmt.Fprintf(out, "  %d splits; the children's capacity was used to 90 %% after ", len(splits))
	if len(used) == 0 {
		fmt.Fprintf(out, "the load was done, or never\n")
		return
	}
	slices.Sort(used)
	fmt.Fprintf(out, "%.1f s (median), %.1f s (latest)", used[len(used)/2]/1000, used[len(used)-1]/1000)
	if never := len(splits) - len(used); never > 0 {
		fmt.Fprintf(out, ", never in %d", never)
	}
	fmt.Fprintf(out, "\n")
}

// bars draws each partition's use over time, a line each.
func (s *Scenario) bars(out io.Writer) {
	var present []Partition
	for _, part := range s.Partitions {
		if part.EndedMS == nil {
			present = append(present, part)
		}
	}
	width := 0
	for i := range present[:min(len(present), barLines)] {
		width = max(width, len([]rune(keyText(present[i].From))))
	}
	for i := range present[:min(len(present), barLines)] {
		part := &present[i]
		fmt.Fprintf(out, "  %-*s %s %.4f\n", min(width, 24), cut(keyText(part.From), 24), bar(part, s.StartMS, s.MakespanSeconds), part.Share)
	}
	if more := len(present) - barLines; more > 0 {
		fmt.Fprintf(out, "  … and %d more\n", more)
	}
	if ended := len(s.Partitions) - len(present); ended > 0 {
		fmt.Fprintf(out, "  %d partitions that were split are only in the JSON\n", ended)
	}
}

// cut shortens a key for a line.
func cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// bar is a partition's units over the seconds of the clock, a column for each, or for several when there are more than
// barColumns. A full block is the capacity of the time that the load was running, a blank no row at all.
func bar(p *Partition, startMS, seconds float64) string {
	start := math.Mod(startMS/1000, 1) // seconds before it in the first column are not the load's
	end := start + seconds
	n := max(len(p.PerSecond), int(math.Ceil(end)))
	each := (n + barColumns - 1) / barColumns
	var b strings.Builder
	for at := 0; at < n; at += each {
		var units int64
		for i := at; i < min(at+each, len(p.PerSecond)); i++ {
			units += p.PerSecond[i]
		}
		covered := min(end, float64(at+each)) - max(start, float64(at))
		b.WriteRune(block(float64(units), p.Capacity*covered))
	}
	return b.String()
}

func block(units, capacity float64) rune {
	if units <= 0 {
		return ' '
	}
	if capacity <= 0 {
		return blocks[len(blocks)-1]
	}
	return blocks[int(min(float64(len(blocks)-1), units/capacity*float64(len(blocks))))]
}
