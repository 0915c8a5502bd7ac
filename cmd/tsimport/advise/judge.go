package advise

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"example.com/tsimport/cmd/tsimport/advise/simulate"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/words"
)

// Thresholds of the verdicts.
const (
	goodShare = 0.7   // minimum share of the capacity that a good key uses
	someShare = 0.35  // minimum share that a usable key uses, with a fix
	maxKey    = 1024  // maximum bytes of a key column
	longKey   = 64    // bytes above which keys cost too much in every row
	nullShare = 0.001 // share of nulls above which they are not accidental
)

// cause is the reason why a candidate is not recommended.
type cause uint8

const (
	fine cause = iota
	floatingPoint
	decimalText
	measure
	constant
	hasNulls
	tooLong
	sequential
	fewValues
	skewed
	inRuns
	tooLarge
	digitText
)

// judgeAll judges every candidate, then splices for candidates that grow too large.
func (s *survey) judgeAll(ctx context.Context) error {
	names := s.Candidates
	if names == nil {
		left := 0
		for _, c := range s.columns {
			if c.code >= 0 || c.floating() {
				names = append(names, c.name)
			} else {
				left++
			}
		}
		if left > 0 {
			s.note("%d columns after the first %d were not rated; name them with --candidates", left, maxStored)
		}
	}
	for _, name := range names {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		s.add(s.split(name))
	}
	for _, c := range slices.Clone(s.report.Candidates) {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		s.fix(c)
	}
	rank := map[Verdict]int{Recommended: 0, Usable: 1, NotRecommended: 2}
	slices.SortStableFunc(s.report.Candidates, func(a, b *Candidate) int { return rank[a.Verdict] - rank[b.Verdict] })
	s.report.Window = simulate.Traffic{Partitions: s.Partitions, Rate: s.Rate}.Window(s.kept.rows)
	if s.kept.rows < 20*s.Partitions {
		s.note("%d rows are too few to tell much about %d partitions", s.kept.rows, s.Partitions)
	}
	return nil
}

func (s *survey) note(format string, a ...any) {
	s.report.Notes = append(s.report.Notes, fmt.Sprintf(format, a...))
}

func nameOf(parts []*column) string { return strings.Join(namesOf(parts), "+") }

func namesOf(columns []*column) (names []string) {
	for _, c := range columns {
		names = append(names, c.name)
	}
	return names
}

func (s *survey) add(parts []*column) *Candidate {
	for _, c := range s.report.Candidates {
		if slices.Equal(c.parts, parts) {
			return c
		}
	}
	c := &Candidate{Column: nameOf(parts), Type: parts[0].own.String(), parts: parts}
	if len(parts) > 1 {
		c.Type = "string"
	}
	c.Facts = s.facts(parts)
	if s.simulable(parts) {
		c.Share, c.Load, c.Cut = s.spread(s.keysOf(parts), identitiesOf(parts))
	}
	s.judge(c)
	s.report.Candidates = append(s.report.Candidates, c)
	return c
}

func (s *survey) simulable(parts []*column) bool {
	return !slices.ContainsFunc(parts, func(c *column) bool { return c.code < 0 || c.rows == 0 })
}

func (s *survey) keysOf(parts []*column) (keys simulate.Keys) {
	for _, c := range parts {
		keys = append(keys, s.kept.columns[c.code])
	}
	return keys
}

// spread simulates live traffic and a load. The hottest value limits the live share, which small windows may not show.
func (s *survey) spread(keys simulate.Keys, identities []int) (live, load float64, cut int) {
	of, cut := simulate.Cut(keys, s.Partitions)
	live = simulate.Live(of, s.order, simulate.Traffic{Partitions: s.Partitions, Rate: s.Rate})
	_, most := s.kept.groups(identities...)
	live = min(live, float64(s.kept.rows)/float64(most*s.Partitions))
	loaded := simulate.Load(of, cut, float64(s.Rate)/float64(s.Partitions))
	return live, loaded.Share * float64(cut) / float64(s.Partitions), cut // keys with few values use few partitions
}

func (s *survey) facts(parts []*column) (f Facts) {
	f.Monotonic, f.Top = "no", []Hot{}
	for i, c := range parts {
		f.Nulls += c.nulls
		f.KeyBytes += ratio(c.bytes, c.rows)
		f.LongestKey += c.longest
		if i > 0 {
			f.KeyBytes++
			f.LongestKey++
		}
	}
	if !s.simulable(parts) {
		return f
	}
	scale := float64(s.rows) / float64(s.kept.rows)
	distinct, most := s.kept.groups(identitiesOf(parts)...)
	f.Hottest = float64(most) / float64(s.kept.rows)
	f.Distinct = int64(distinct)
	if !s.kept.all() {
		f.Distinct = int64(float64(distinct) * scale) // assumes new values in other rows; replaced below for single columns
	}
	if c := parts[0]; len(parts) == 1 {
		// If not all rows were kept, an estimate over all rows is better. It is capped at the number of rows.
		if !s.kept.all() {
			f.Distinct = min(c.distinct.Count(), c.rows)
		} else if c.nulls > 0 {
			f.Distinct-- // null does not count
		}
		for _, v := range c.top.Values(10) {
			f.Top = append(f.Top, Hot{shown(v.Value), float64(v.Count) / float64(c.top.Seen()) * ratio(c.rows, s.rows)})
		}
		if len(f.Top) > 0 && (c.nulls > 0 || !s.kept.all()) {
			f.Hottest = f.Top[0].Share
		}
		f.DigitsAsText = !c.integer && c.digits && c.rows > 0
		if !c.integer && len(c.prefix) > 0 && f.Distinct > 1 {
			f.Prefix = shown(c.prefix)
		}
		f.Monotonic = s.monotonic(c)
	}
	f.Enumeration = f.Distinct > 0 && f.Distinct <= int64(4*s.Partitions) && s.rows >= 20*f.Distinct
	f.LargestBytes = int64(max(1, f.Hottest*float64(s.rows)) * s.report.RowBytes)
	f.GrownBytes = int64(float64(f.LargestBytes) * s.Growth / min(s.Growth, s.divides(parts)))
	f.Over10GB = f.GrownBytes > table.LargestValue
	return f
}

func ratio(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// monotonic returns whether values grow or fall in arrival order: "increasing", "decreasing" or "no". Texts count by
// their order, even if they are times.
func (s *survey) monotonic(c *column) string {
	switch up, down := s.kept.trend(c.code, s.order); {
	case up > 0.6 && down < 0.05: // the rest may be equal
		return "increasing"
	case down > 0.6 && up < 0.05:
		return "decreasing"
	}
	return "no"
}

// divides returns the number of values to which a splice distributes the rows of a growing value.
func (s *survey) divides(parts []*column) float64 {
	factor := 1.0
	for i := 1; i < len(parts); i++ {
		own := float64(s.distinctOf(parts[i]))
		switch each, rows := s.together(parts[:i], parts[i]); {
		case rows < 1.5: // no value repeats; a column with few values is assumed to depend on the earlier parts
			if own > float64(4*s.Partitions) {
				factor *= own
			}
		case each < 1.05:
		case each < 0.8*rows:
			factor *= each
		default:
			factor *= own
		}
	}
	// The largest value's size already reflects how the present rows divide, so that factor is removed.
	now, _ := s.kept.groups(identitiesOf(parts)...)
	first, _ := s.kept.groups(parts[0].identity())
	return max(1, factor/max(1, float64(now)/float64(first)))
}

func identitiesOf(parts []*column) (places []int) {
	for _, c := range parts {
		places = append(places, c.identity())
	}
	return places
}

// together returns the average number of values of a column, and of rows, per combined value of the parts.
func (s *survey) together(parts []*column, next *column) (values, rows float64) {
	places := identitiesOf(parts)
	before, _ := s.kept.groups(places...)
	after, _ := s.kept.groups(append(places, next.identity())...)
	return float64(after) / float64(before), float64(s.kept.rows) / float64(before)
}

// distinctOf estimates the number of distinct values of a column.
func (s *survey) distinctOf(c *column) int64 { return min(c.distinct.Count(), max(1, c.rows)) }

func (s *survey) judge(c *Candidate) {
	c.cause = s.causeOf(c)
	switch {
	case c.cause == fine:
		c.Verdict = Recommended
	case c.cause == tooLarge || c.cause == digitText || c.cause == measure:
		c.Verdict = Usable
	case (c.cause == inRuns || c.cause == skewed) && !s.counts(c.parts[0]) && c.Share >= someShare:
		c.Verdict = Usable
	default:
		c.Verdict = NotRecommended
	}
	c.Reason = s.reason(c)
	for _, p := range c.parts {
		if p.integer || p.floating() {
			continue
		}
		if p.empty > 0 {
			c.Notes = append(c.Notes, fmt.Sprintf("%d values of %s are empty: in the first key column, their rows are rejected "+
				"or sort together", p.empty, p.name))
		}
	}
	if c.Prefix != "" && len(c.Prefix) > 2 {
		c.Notes = append(c.Notes, fmt.Sprintf("all values begin with %q: it costs %d bytes in every row and distinguishes "+
			"nothing", c.Prefix, len(c.Prefix)))
	}
	if c.KeyBytes > longKey {
		c.Notes = append(c.Notes, fmt.Sprintf("keys of %.0f bytes on average cost space in every row and every index: keep "+
			"them short", c.KeyBytes))
	}
}

func (s *survey) causeOf(c *Candidate) cause {
	first := c.parts[0]
	switch {
	case slices.ContainsFunc(c.parts, (*column).floating):
		return floatingPoint
	case first.decimals && first.rows > 0 && s.counts(first):
		return decimalText
	case first.rows == 0 || c.Distinct <= 1:
		return constant
	case float64(c.Nulls) > nullShare*float64(s.rows):
		return hasNulls
	case c.LongestKey > maxKey:
		return tooLong
	case c.Monotonic != "no" && c.Share < goodShare:
		return sequential
	case c.Enumeration:
		return fewValues
	case c.Share < goodShare && c.Hottest > 1.5/float64(s.Partitions):
		return skewed
	case c.Share < goodShare:
		return inRuns
	case c.Over10GB:
		return tooLarge
	case s.counts(first):
		return measure
	case c.DigitsAsText && first.uneven && len(c.parts) == 1:
		return digitText
	}
	return fine
}

// reason explains the verdict with its figures in one sentence.
func (s *survey) reason(c *Candidate) string {
	name, p := c.Column, s.Partitions
	used := fmt.Sprintf("live traffic could use %s of %d partitions", percent(c.Share), p)
	switch c.cause {
	case floatingPoint:
		return fmt.Sprintf("a key column is an integer, a string or binary, but %s is %s: as text it would neither sort "+
			"nor compare like the number", name, c.parts[0].own)
	case decimalText:
		return "its values are decimal numbers in a form that only text preserves: they measure something rather than " +
			"identify it, and sort as text"
	case measure:
		return fmt.Sprintf("even (%s), but the numbers may be counts or measurements, which change and do not identify a "+
			"row; if %s is an identifier, name it with --candidates", used, name)
	case constant:
		if c.Distinct == 0 {
			return fmt.Sprintf("%s has no values", name)
		}
		return fmt.Sprintf("%s has %d value, which is never divided: all rows would be in one partition", name, c.Distinct)
	case hasNulls:
		return fmt.Sprintf("%s of the rows have no %s: key columns cannot be null, so these rows would be rejected",
			percent(ratio(c.Nulls, s.rows)), name)
	case tooLong:
		return fmt.Sprintf("values of up to %d bytes: a key column holds %d, longer ones are rejected", c.LongestKey, maxKey)
	case sequential:
		return fmt.Sprintf("%s is %s with arrival: concurrent writes go to one partition, and %s", name, c.Monotonic, used)
	case fewValues:
		return fmt.Sprintf("only %s values, the hottest with %s of the rows; a value is never divided, so they cannot "+
			"spread as the table grows, and %s", words.Grouped(c.Distinct), percent(c.Hottest), used)
	case skewed:
		return fmt.Sprintf("the hottest of %s values has %s of the rows, an even partition %s; it is never divided, so %s",
			words.Grouped(c.Distinct), percent(c.Hottest), percent(1/float64(p)), used)
	case inRuns:
		return fmt.Sprintf("rows that arrive together have neighbouring keys: %s although no value is too hot", used)
	case tooLarge:
		return fmt.Sprintf("even, but at %s times the rows the largest value has %s, and one value should stay below 10 GB",
			times(s.Growth), words.Bytes(c.GrownBytes))
	case digitText:
		return fmt.Sprintf("even (%s), but its digits are texts: they sort as 10, 100, 9, not as numbers", used)
	}
	reason := fmt.Sprintf("%s values, the hottest with %s of the rows, written evenly as they arrive: %s",
		words.Grouped(c.Distinct), percent(c.Hottest), used)
	if s.Growth != 1 {
		reason += fmt.Sprintf("; at %s times the rows the largest value has %s", times(s.Growth), words.Bytes(c.GrownBytes))
	}
	return reason
}
