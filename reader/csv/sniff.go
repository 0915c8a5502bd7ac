package csv

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// DetectEOL returns CR if all line ends outside quotes are CRs without an LF, otherwise LF.
func DetectEOL(head []byte, quote byte) byte {
	quoted, lone := false, false
	for i, c := range head {
		switch {
		case c == quote && quote != 0:
			quoted = !quoted
		case quoted:
		case c == '\n':
			return '\n'
		case c == '\r' && i+1 < len(head) && head[i+1] != '\n':
			lone = true
		}
	}
	if lone {
		return '\r'
	}
	return '\n'
}

// String returns a description of the dialect for users.
func (d Dialect) String() string {
	quote := "no quotes"
	if d.Quote != 0 {
		quote = "quote " + strconv.Quote(string(rune(d.Quote)))
	}
	text := fmt.Sprintf("delimiter %q, %s", d.Delimiter, quote)
	if d.Name != "" {
		text = d.Name + ": " + text
	}
	if d.Escape != 0 {
		text += fmt.Sprintf(", escape %q", string(rune(d.Escape)))
	}
	if d.Comment != "" {
		text += fmt.Sprintf(", comments begin with %q", d.Comment)
	}
	switch {
	case d.RecordEnd != "":
		text += fmt.Sprintf(", records end with %q", d.RecordEnd)
	case d.eol() == '\r':
		text += ", records end with CR"
	}
	return text
}

// reading describes how well a dialect fits a sample.
type reading struct {
	d       Dialect
	fields  int            // number of fields in most records
	records int            // number of records, including misfits
	misfits int            // records that are bad or have another number of fields
	first   bool           // whether the first record has more than one field
	texts   map[int]string // by offset: texts of the records that are not misfits
	// Evidence for the quote, from records that are not misfits.
	enclosed int  // fields in quotes
	needed   int  // those that contain a delimiter, a line end or a quote
	stray    int  // unquoted fields that contain the quote
	line     bool // whether all fields of the first of several records are in quotes
	column   bool // whether nearly all values of a column, but not its name, are in quotes
	all      bool // whether every non-empty field is in quotes
}

// maxFault is the largest number of records that one fault can damage: an extra line end makes two records of one.
const maxFault = 2

// Sniff detects the dialect of a text from its beginning. It tries common delimiters, quotes and escapes, and chooses
// the reading in which nearly all records have the same number of fields. If a fault may have damaged the better of two
// readings, the quotes decide; otherwise Sniff fails and names the readings. A header must contain the delimiter.
func Sniff(sample []byte, header bool) (Dialect, error) {
	eol := DetectEOL(sample, '"')
	if n := bytes.LastIndexByte(sample, eol); n >= 0 {
		sample = sample[:n+1] // the last record may be incomplete
	}
	var several, doubtful, others, single []reading
	for _, delimiter := range []string{",", ";", "\t", "|", "\x01"} {
		for _, quote := range []byte{'"', 0, '\''} {
			if quote != 0 && !edges(sample, delimiter, quote) {
				continue
			}
			for _, escape := range []byte{0, '\\'} {
				r := readWith(Dialect{Delimiter: delimiter, Quote: quote, Escape: escape, EOL: eol}, sample)
				switch {
				case r.good(header):
					several = append(several, r)
				case r.fields <= 1:
					single = append(single, r)
				case (r.first || !header) && r.likely():
					doubtful = append(doubtful, r)
				default:
					others = append(others, r)
				}
			}
		}
	}
	if len(several) == 0 {
		several, doubtful = doubtful, nil // their misfits will be rejected
	}
	if i := slices.IndexFunc(others, func(r reading) bool { return !r.first && r.likely() }); len(several) == 0 && i >= 0 {
		return Dialect{}, fmt.Errorf("with %v, most records have %d fields, but not the first; give --delimiter, --quote "+
			"and --escape", others[i].d, others[i].fields)
	}
	if len(several) == 0 {
		several, single = single, nil // all records have one field
	}
	for _, r := range slices.Concat(doubtful, others, single) { // a fault in the header, or too few records
		if r.misfits <= maxFault && slices.ContainsFunc(several,
			func(s reading) bool { return s.d.Delimiter == r.d.Delimiter }) {
			several = append(several, r)
		}
	}
	best := choose(several)
	if len(best) == 0 {
		return Dialect{Delimiter: ",", Quote: '"', EOL: eol}, nil
	}
	if len(best) > 1 {
		var names []string
		for _, r := range best {
			names = append(names, fmt.Sprintf("%v (%d columns)", r.d, r.fields))
		}
		return Dialect{}, fmt.Errorf("the text can be read in %d ways: %s; say which with --delimiter, --quote and --escape",
			len(best), strings.Join(names, " or "))
	}
	d := best[0].d
	if usual := d; d.Quote == 0 { // later records may have quotes
		usual.Quote = '"'
		if same := readWith(usual, sample); same.misfits == best[0].misfits && !same.contradicts(&best[0]) {
			d = usual
		}
	}
	return d, nil
}

// good reports whether faults can explain the misfits.
func (r *reading) good(header bool) bool {
	return r.fields >= 2 && (r.first || !header) && 2*r.misfits < r.records && r.misfits <= max(maxFault, r.records/5)
}

// likely reports whether the misfits are few for a small file.
func (r *reading) likely() bool { return 2*r.misfits <= r.records || r.misfits <= maxFault }

// edges reports whether quotes occur both at the start of a field and at the end of one.
func edges(sample []byte, delimiter string, quote byte) bool {
	q, opens, closes := string([]byte{quote}), false, false
	for _, end := range []string{delimiter, "\n", "\r"} {
		opens = opens || bytes.Contains(sample, []byte(end+q))
		closes = closes || bytes.Contains(sample, []byte(q+end))
	}
	return closes && (opens || bytes.HasPrefix(sample, []byte(q)))
}

// contradicts reports whether r and o differ in a record that fits both, or more than one record fits only one of them.
func (r *reading) contradicts(o *reading) bool {
	both := 0
	for at, text := range r.texts {
		if other, ok := o.texts[at]; ok {
			if both++; other != text {
				return true
			}
		}
	}
	return len(r.texts)+len(o.texts) > 2*both+1
}

// choose returns the best reading, or several if none is clearly best.
func choose(all []reading) []reading {
	slices.SortStableFunc(all, func(a, b reading) int { return a.misfits - b.misfits })
	var plausible, best []reading
	for _, r := range all {
		if r.misfits <= all[0].misfits+maxFault && !slices.ContainsFunc(plausible,
			func(p reading) bool { return !p.contradicts(&r) }) {
			plausible = append(plausible, r)
		}
	}
	for _, r := range plausible {
		if !slices.ContainsFunc(plausible, func(p reading) bool { return p.beats(&r) }) {
			best = append(best, r)
		}
	}
	if len(best) == 0 {
		return plausible
	}
	return best
}

// beats reports whether the quotes and escapes make r clearly more plausible than o.
func (r *reading) beats(o *reading) bool {
	switch against := o.stray + o.misfits; {
	case r.d.Delimiter != o.d.Delimiter:
		return false
	case r.d.Quote == o.d.Quote:
		return r.d.Escape != 0 && o.misfits >= r.misfits+maxFault
	case o.d.Quote != 0 && against > maxFault && against >= 3*o.enclosed:
		return true // quotes are apostrophes in the other reading
	}
	return r.d.Quote != 0 && r.certain() && r.enclosed >= 10*o.enclosed
}

// certain reports whether the quotes are unlikely to be part of the text.
func (r *reading) certain() bool {
	against := r.stray + r.misfits
	switch {
	case r.needed >= maxFault || r.needed > 0 && against == 0:
	case r.d.Quote == '"' && (r.line || r.column || r.enclosed >= 8), r.all && r.enclosed >= 2*r.fields:
	default:
		return false
	}
	return r.enclosed >= 10*against
}

func readWith(d Dialect, sample []byte) reading {
	r := reading{d: d, texts: map[int]string{}, all: true}
	counts := map[int]int{}
	p := NewParser(d)
	p.Reset(sample)
	for rec, ok := p.Next(); ok; rec, ok = p.Next() {
		r.first = r.first || p.Records() == 1 && rec.Bad == nil && len(rec.Fields) > 1
		if rec.Bad == nil {
			counts[len(rec.Fields)]++
		}
		if rec.Bad == nil || rec.Bad.Message != neverCloses || p.pos < len(sample) { // the sample may end inside quotes
			r.records++
		}
	}
	for n, c := range counts {
		if c > counts[r.fields] || c == counts[r.fields] && n > r.fields {
			r.fields = n
		}
	}
	r.misfits = r.records - counts[r.fields]
	quoted, bare := make([]int, r.fields), make([]int, r.fields)
	var text []byte
	p.Reset(sample)
	for rec, ok := p.Next(); ok; rec, ok = p.Next() {
		if rec.Bad != nil || len(rec.Fields) != r.fields {
			continue
		}
		r.line = r.line || p.Records() == 1 && len(rec.Fields) > 1
		text = text[:0]
		for i, f := range rec.Fields {
			text = strconv.AppendQuote(text, string(f.Bytes))
			has := d.Quote != 0 && bytes.IndexByte(f.Bytes, d.Quote) >= 0
			switch {
			case f.Quoted:
				r.enclosed++
				quoted[i]++
				if has || bytes.Contains(f.Bytes, []byte(d.Delimiter)) || bytes.IndexByte(f.Bytes, d.eol()) >= 0 {
					r.needed++
				}
			case len(f.Bytes) > 0:
				r.all = false
				if p.Records() > 1 {
					bare[i]++
				} else {
					r.line = false
				}
			}
			if has && !f.Quoted {
				r.stray++
			}
		}
		r.texts[int(rec.Span.Start)] = string(text)
	}
	for i, n := range quoted {
		r.column = r.column || n >= 2 && n >= 10*bare[i]
	}
	return r
}
