package advise

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"example.com/tsimport/cmd/tsimport/advise/simulate"
	"example.com/tsimport/cmd/tsimport/advise/sketch"
	"example.com/tsimport/internal/words"
)

// fix looks for a better key based on the candidate, and simulates it.
func (s *survey) fix(c *Candidate) {
	if !s.mayKey(c.parts...) {
		return
	}
	if c.Fix = s.perPeriod(c); c.Fix != nil {
		return
	}
	switch c.cause {
	case sequential:
		c.Fix = s.hashPrefix(c)
	case fewValues, skewed, inRuns:
		if c.Fix = s.spliceWith(c); c.Fix == nil && c.cause == inRuns {
			c.Fix = s.hashPrefix(c)
		}
	case tooLarge:
		c.Fix = s.spliceChain(c)
	case digitText:
		p := c.parts[0]
		if p.zeros {
			break // 7 and 007 would become one key
		}
		digits := "int(" + identifier(p.name) + ")"
		if p.longest > maxIntegerDigits {
			digits = identifier(p.name)
		}
		if p.longest > maxPadDigits {
			break
		}
		width := p.longest
		if slices.Contains(s.own, p) { // later rows may have more digits
			width = maxIntegerDigits
			if p.longest > maxIntegerDigits {
				width = maxPadDigits
			}
		}
		c.Fix = &Fix{Name: "pad", Expression: s.keyName() + "=pad(" + digits + ", " + strconv.Itoa(width) + ")",
			Share: c.Share, Load: c.Load, Why: "with leading zeros, text sorts as the numbers do", columns: []string{p.name}}
	case tooLong:
		p := c.parts[0]
		c.Fix = &Fix{Name: "hash", Expression: s.keyName() + "=sha256(" + identifier(p.name) + ", 32)", Share: 1, Load: 1,
			Why: "a hash is short and evenly distributed; the column itself remains an attribute", columns: []string{p.name}}
	}
	if c.Fix != nil {
		s.keep(c)
	}
}

// keep drops a fix that does not help.
func (s *survey) keep(c *Candidate) {
	// The lower threshold is for few rows, because a window then has so few values that even hashes share partitions.
	helps := c.Fix.Share >= goodShare || c.Fix.Share >= 0.4 && c.Fix.Share >= 4*c.Share
	if !helps && c.cause != digitText {
		c.Fix = nil
	}
}

// Maximum numbers of digits that padding supports.
const (
	maxIntegerDigits = 18 // all numbers of this length fit into 64 bits
	maxPadDigits     = 64
)

// hashPrefix prefixes the value with a few hex digits of its hash.
func (s *survey) hashPrefix(c *Candidate) *Fix {
	if len(c.parts) != 1 {
		return nil
	}
	p := c.parts[0]
	hashed := make([]uint64, s.kept.rows)
	for i, code := range s.kept.columns[p.identity()] {
		hashed[i] = sketch.Mix(code) >> 48 // corresponds to four hex digits
	}
	fix := &Fix{Name: "hash prefix", columns: []string{p.name},
		Expression: fmt.Sprintf("%s=md5(%s, 4) + text(%s)", s.keyName(), identifier(p.name), identifier(p.name)),
		Why: "four hex digits of its hash before the value spread neighbours over all partitions; reads of one " +
			"value still work, reads of a range no longer do"}
	fix.Share, fix.Load, _ = s.spread(simulate.Keys{hashed, s.kept.columns[p.code]}, identitiesOf(c.parts))
	return fix
}

// spliceWith returns a splice with a column that divides the candidate's values.
func (s *survey) spliceWith(c *Candidate) *Fix {
	if len(c.parts) != 1 {
		return nil
	}
	for _, partner := range s.partners(c.parts[0]) {
		if each, _ := s.together(c.parts, partner); each < 4 {
			continue
		}
		if f := s.splice([]*column{c.parts[0], partner}); f.Share >= goodShare {
			f.Why = fmt.Sprintf("with %s after it in one key column, values of %s can be divided", partner.name, c.Column)
			return f
		}
	}
	return nil
}

// spliceChain joins columns, coarse ones first, until no value becomes too large. The report shows each step.
func (s *survey) spliceChain(c *Candidate) *Fix {
	parts := slices.Clone(c.parts)
	for _, partner := range s.partners(c.parts[0]) {
		if slices.Contains(parts, partner) {
			continue
		}
		if len(parts) == maxKeyColumns {
			return nil
		}
		each, rows := s.together(parts, partner)
		before := parts
		parts = append(slices.Clone(parts), partner)
		step := s.add(parts)
		if step.cause == tooLarge && s.divides(parts) == s.divides(before) {
			step.Verdict = NotRecommended
			step.Reason = fmt.Sprintf(
				"does not help: each %s has one %s, so at %s times the rows the largest value still has %s", nameOf(before),
				partner.name, times(s.Growth), words.Bytes(step.GrownBytes))
			if rows < 1.5 {
				step.Reason = fmt.Sprintf("does not help: hardly any %s occurs twice here, and the %d values of %s are assumed "+
					"to depend on it, so at %s times the rows the largest value still has %s",
					nameOf(before), s.distinctOf(partner), partner.name, times(s.Growth), words.Bytes(step.GrownBytes))
			} else if each >= 1.05 {
				step.Reason = fmt.Sprintf("does not help enough: at %s times the rows the largest value still has %s",
					times(s.Growth), words.Bytes(step.GrownBytes))
			}
		}
		if !step.Over10GB && step.Share >= goodShare {
			f := s.splice(parts)
			f.Why = fmt.Sprintf("at %s times the rows its largest value has %s", times(s.Growth), words.Bytes(step.GrownBytes))
			return f
		}
	}
	return nil
}

func (s *survey) splice(parts []*column) *Fix {
	var texts []string
	separator := `","`
	f := &Fix{Name: "splice"}
	for _, p := range parts {
		f.columns = append(f.columns, p.name)
		switch {
		case p.integer && p.low < 0:
			texts = append(texts, fmt.Sprintf("pad(%s, %d, signed)", identifier(p.name), s.digitsOf(p)))
		case p.integer:
			texts = append(texts, fmt.Sprintf("pad(%s, %d)", identifier(p.name), s.digitsOf(p)))
		default:
			texts = append(texts, identifier(p.name))
			if p.lowByte <= ',' {
				separator = "auto"
			}
		}
	}
	f.Expression = fmt.Sprintf("%s=splice(%s, %s)", s.keyName(), separator, strings.Join(texts, ", "))
	f.Share, f.Load, _ = s.spread(s.keysOf(parts), identitiesOf(parts))
	return f
}

// digitsOf returns the padded width of a number column, by the source's declared type or else by the input's numbers.
func (s *survey) digitsOf(c *column) int {
	if slices.Contains(s.own, c) {
		return len(strconv.FormatInt(math.MaxInt64, 10))
	}
	return max(len(strconv.FormatInt(c.high, 10)), len(strings.TrimPrefix(strconv.FormatInt(c.low, 10), "-")))
}

// identifying matches names of columns that hold identifiers.
var identifying = regexp.MustCompile(
	`([iI][dD]|ID[sS]?|[kK]ey|[cC]ode|[nN]o|[nN]um(ber)?|[uU]uid|UUID|SN|编号|编码|号|代码)$|` +
		`(?i)(user|customer|account|device|card|phone|mobile|host|session|member|client|buyer|seller|shop|store|vehicle|sensor|meter|imei|mac|vin|sku)$`)

// notIdentifying matches words that end like such names but do not identify anything.
var notIdentifying = regexp.MustCompile(
	`(?i)(humid|paid|valid|bid|grid|void|avoid|solid|liquid|fluid|hybrid|mid|acid|rapid|covid)$`)

// named reports whether a column's name, or the user, marks it as an identifier.
func (s *survey) named(c *column) bool {
	return identifies(c.name) || slices.Contains(s.own, c) ||
		slices.ContainsFunc(s.Candidates, func(name string) bool { return slices.Contains(s.split(name), c) })
}

func identifies(name string) bool {
	return identifying.MatchString(name) && !notIdentifying.MatchString(name)
}

// counts reports whether a column seems to be a count or a measurement.
func (s *survey) counts(c *column) bool {
	if c.clock.told || s.named(c) {
		return false
	}
	return c.decimals || c.integer || c.numbers && !c.digits
}

// partners returns columns that may follow first in a splice: identifying ones, then coarse before fine ones.
func (s *survey) partners(first *column) []*column {
	var list []*column
	for _, c := range s.columns {
		if c == first || c.code < 0 || c.nulls > 0 || c.empty > 0 || c.clock.told || c.longest > longKey || s.counts(c) ||
			s.distinctOf(c) < 2 || !s.mayKey(c) {
			continue
		}
		list = append(list, c)
	}
	class := func(c *column) int {
		switch {
		case s.monotonic(c) != "no":
			return 2
		case identifies(c.name):
			return 0
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b *column) int {
		return cmp.Or(cmp.Compare(class(a), class(b)), cmp.Compare(s.distinctOf(a), s.distinctOf(b)))
	})
	return list
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// reserved lists words that cannot be names in an expression.
var reserved = []string{"true", "false", "nil", "not", "and", "or", "in", "let", "if", "else", "matches", "contains",
	"startsWith", "endsWith", "auto", "signed", "text", "int", "pad", "splice", "md5"}

// identifier returns a column's name in the form of key expressions.
func identifier(name string) string {
	if plainName.MatchString(name) && !slices.Contains(reserved, name) {
		return name
	}
	return "col(" + strconv.Quote(name) + ")"
}

// keyName returns a name for a key column that no input column has.
func (s *survey) keyName() string {
	for _, name := range []string{"key", "pk", "partition_key", "tablestore_key"} {
		if s.find(name) == nil {
			return name
		}
	}
	return "tablestore_partition_key"
}
