package advise

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"example.com/tsimport/internal/keyexpr"
)

// maxKeyColumns is the service's limit for primary-key columns.
const maxKeyColumns = 4

// design builds a primary key from the best partition key and columns that make it unique.
func (s *survey) design() {
	best := s.best()
	if best == nil {
		which := "column"
		if s.Candidates != nil {
			which = "candidate"
		}
		s.note("no %s makes a good partition key, even hashed or spliced: build one from the columns that reads use", which)
		return
	}
	d := &Design{PartitionKey: best.Column}
	inKey := slices.Clone(best.parts)
	if best.cause == fine && len(best.parts) == 1 {
		d.Keys = []string{s.plainKey(best.parts[0])}
	} else if best.Fix != nil {
		d.Keys = []string{best.Fix.Expression}
		inKey = nil
		for _, name := range best.Fix.columns {
			inKey = append(inKey, s.find(name))
		}
	} else {
		d.Keys = []string{s.splice(best.parts).Expression}
	}
	s.makeUnique(d, inKey)
	d.Command = s.command(s.tableName(), d.Keys)
	s.report.Design = d
}

// command returns the command that loads the input with a key, or copies it if it is a table of the service.
func (s *survey) command(table string, keys []string) []string {
	args := append([]string{"load"}, s.Input.Args...)
	args = append(args, "--table", table, "--create")
	if s.Input.Copied {
		args = []string{"copy", s.Input.Args[0], table + "_new"}
	}
	for _, k := range keys {
		args = append(args, "--pk", k)
	}
	return args
}

// commands completes the keys of fixes and splices, because rows with equal keys would become one row.
func (s *survey) commands() {
	for _, c := range s.report.Candidates {
		switch f := c.Fix; {
		case f == nil:
		case f.Table == "":
			f.Keys = s.whole(f.Expression, f.columns)
			f.Command = s.command(s.tableName(), f.Keys)
		case s.report.Design != nil:
			f.Keys = s.report.Design.Keys
			f.Command = s.command(f.Table, f.Keys)
		}
		if len(c.parts) > 1 && s.mayKey(c.parts...) && c.Verdict != NotRecommended && c.Fix == nil {
			f := s.splice(c.parts)
			c.Key = &Key{Keys: s.whole(f.Expression, f.columns)}
			c.Key.Command = s.command(s.tableName(), c.Key.Keys)
		}
	}
}

// whole adds columns, preferably those of the recommended key, to a partition key until it is unique.
func (s *survey) whole(expression string, names []string) []string {
	if s.own != nil {
		return s.withOwn([]string{expression})
	}
	var in, more []*column
	for _, name := range names {
		in = append(in, s.find(name))
	}
	d := s.report.Design
	if d != nil {
		for _, c := range d.columns {
			if !slices.Contains(in, c) {
				more = append(more, c)
			}
		}
	}
	if d == nil || len(more) >= maxKeyColumns {
		made := &Design{Key: Key{Keys: []string{expression}}}
		s.makeUnique(made, in)
		return made.Keys
	}
	apart := func(more []*column) int {
		n, _ := s.kept.groups(identitiesOf(slices.Concat(in, more))...)
		return n
	}
	for all, i := apart(more), len(more)-1; i >= 0; i-- {
		if fewer := slices.Delete(slices.Clone(more), i, i+1); apart(fewer) == all {
			more = fewer
		}
	}
	keys := []string{expression}
	for _, c := range more {
		keys = append(keys, s.plainKey(c))
	}
	return keys
}

// plainKey returns a column in the form of --pk, renamed if its name contains a separator.
func (s *survey) plainKey(c *column) string {
	if !strings.ContainsAny(c.name, "=:") {
		return c.name
	}
	name := strings.Trim(notInNames.ReplaceAllString(c.name, "_"), "_") + "_key"
	for s.find(name) != nil {
		name += "_"
	}
	return strings.TrimLeft(name, "0123456789_") + "=" + identifier(c.name)
}

// best returns the candidate for the recommended key. Good ones precede fixed ones, and identifying columns others.
func (s *survey) best() *Candidate {
	score := func(c *Candidate) int {
		p := c.parts[0]
		n := 0
		switch {
		case c.Fix != nil && c.Fix.Table != "": // a table per period, with another partition key
		case c.Verdict == Recommended && len(c.parts) == 1:
			n = 300
		case c.Verdict == Usable && c.Fix != nil:
			n = 200
		case c.Verdict == Recommended:
			n = 150
		case c.Fix != nil && c.Fix.Share >= goodShare:
			n = 100
		case c.Fix != nil:
			n = 30
		}
		if n == 0 || s.counts(p) || !s.mayKey(c.parts...) {
			return 0
		}
		if identifies(p.name) {
			n += 40
		}
		if p.clock.told || p.longest > longKey || p.empty > 0 {
			n -= 20
		}
		if float64(c.Distinct) < 0.9*float64(s.rows) { // identifies an owner rather than a row
			n += 10
		}
		if c.Fix != nil && c.Fix.Name == "splice" && c.cause != tooLarge {
			n += 5 // it preserves the order
		}
		return n
	}
	var found *Candidate
	for _, c := range s.report.Candidates {
		if n := score(c); n > 0 && (found == nil || n > score(found)) {
			found = c
		}
	}
	return found
}

// withOwn adds the missing columns of the source's own key, which guarantees uniqueness.
func (s *survey) withOwn(keys []string) []string {
	var env keyexpr.Env
	for _, c := range s.columns {
		env.Columns = append(env.Columns, keyexpr.Input{Name: c.name, Type: c.own})
	}
	var told, rest []string
	for _, k := range keys {
		name, expr, computed := strings.Cut(k, "=")
		if p, err := keyexpr.Compile(expr, env); computed && err == nil {
			told = append(told, p.Tells()...)
		} else if !computed {
			told = append(told, name)
		}
	}
	keys = slices.Clone(keys)
	left := slices.DeleteFunc(slices.Clone(s.own), func(c *column) bool { return slices.Contains(told, c.name) })
	joined := len(keys)+len(left) > maxKeyColumns
	for _, c := range left {
		rest = append(rest, identifier(c.name))
		if !joined {
			keys = append(keys, s.plainKey(c))
		}
	}
	if joined {
		keys = append(keys, s.keyName()+"_rest=splice(auto, "+strings.Join(rest, ", ")+")")
	}
	return keys
}

// makeUnique adds columns to the key until it is unique: the source's own key, or else identifying columns first.
func (s *survey) makeUnique(d *Design, inKey []*column) {
	if s.own != nil {
		d.Keys, d.Unique = s.withOwn(d.Keys), "it has all columns of the source's own key, so it stays unique"
		return
	}
	names := func(c *column) bool { return identifies(c.name) && !c.clock.told }
	rows, begun := s.kept.rows, d.Keys
	distinct := -1
	for _, kinds := range [][]func(c *column) bool{
		{names, func(c *column) bool { return !s.counts(c) }, s.counts},
		{func(c *column) bool { return !s.counts(c) }, s.counts},
	} {
		if distinct == rows {
			break
		}
		in := slices.Clone(inKey)
		n, _ := s.kept.groups(identitiesOf(in)...)
		for _, kind := range kinds {
			for n < rows && len(begun)+len(in)-len(inKey) < maxKeyColumns {
				next, with := s.unlike(in, kind)
				if next == nil || with == n {
					break
				}
				in, n = append(in, next), with
			}
		}
		if n <= distinct {
			continue
		}
		d.Keys, d.columns, distinct = slices.Clone(begun), in, n
		for _, c := range in[len(inKey):] {
			d.Keys = append(d.Keys, s.plainKey(c))
		}
	}
	where, in := "all rows", "in this file"
	if len(s.report.Files) > 1 {
		in = "in these files"
	}
	if !s.kept.all() {
		where = fmt.Sprintf("%d sampled rows of %d", rows, s.rows)
		in = "among " + where
	}
	if distinct == rows {
		d.Unique = fmt.Sprintf("unique %s; later rows may repeat it", in)
		return
	}
	d.Unique = fmt.Sprintf("%d of %s share their key with another row, and the last one wins: add a column that "+
		"distinguishes them, or load them unchanged if they are repeats", rows-distinct, where)
}

// unlike finds the column that best distinguishes rows with equal keys, preferably an identifying one or a counter.
func (s *survey) unlike(inKey []*column, takes func(*column) bool) (best *column, distinct int) {
	type choice struct {
		c        *column
		distinct int
	}
	var choices []choice
	for _, c := range s.columns {
		if slices.Contains(inKey, c) || c.code < 0 || c.nulls > 0 || c.longest > maxKey || c.rows == 0 || !takes(c) {
			continue
		}
		n, _ := s.kept.groups(identitiesOf(append(slices.Clone(inKey), c))...)
		choices = append(choices, choice{c, n})
	}
	if len(choices) == 0 {
		return nil, 0
	}
	most := slices.MaxFunc(choices, func(a, b choice) int { return cmp.Compare(a.distinct, b.distinct) }).distinct
	choices = slices.DeleteFunc(choices, func(c choice) bool {
		return float64(c.distinct) < float64(most)-0.001*float64(s.kept.rows) && c.distinct < s.kept.rows
	})
	class := func(c *column) int {
		switch named := identifies(c.name); {
		case named && s.monotonic(c) != "no":
			return 0
		case named:
			return 1
		case c.clock.told:
			return 2
		}
		return 3
	}
	shared := func(c choice) int { return min(s.kept.rows-c.distinct, 1) } // 0 if unique
	b := slices.MinFunc(choices, func(a, b choice) int {
		return cmp.Or(cmp.Compare(shared(a), shared(b)), cmp.Compare(class(a.c), class(b.c)),
			-cmp.Compare(a.distinct, b.distinct))
	})
	return b.c, b.distinct
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// tableName derives a table name from the first file, or from the table that is read.
func (s *survey) tableName() string {
	base := path.Base(strings.ReplaceAll(s.Input.Args[0], `\`, "/"))
	base, _, _ = strings.Cut(base, ".")
	if s.Input.Table != "" {
		base = s.Input.Table
	}
	name := strings.Trim(notInNames.ReplaceAllString(base, "_"), "_")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = strings.TrimSuffix("imported_"+name, "_")
	}
	return name[:min(len(name), 100)]
}
