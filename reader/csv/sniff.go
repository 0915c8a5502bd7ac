package csv

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// DetectEOL returns what ends the records of a text that begins with head: CR only if line ends outside quotes are lone CRs
// throughout, as old Macintosh programs wrote them; otherwise LF. Quote 0 is none.
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

// String describes the dialect to a user.
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

// reading is how well a dialect reads a sample.
type reading struct {
	d      Dialect
	fields int     // in most records
	share  float64 // of records that have so many
	text   string  // the records, to see whether two dialects read the same
}

// Sniff finds the dialect of a text by its beginning, which ends anywhere. It tries the usual delimiters, quotes and
// escapes and takes the reading in which nearly all records have the same number of fields, at least two. Where two
// readings that differ are equally good, it refuses to guess and names both.
func Sniff(sample []byte) (Dialect, error) {
	eol := DetectEOL(sample, '"')
	if n := bytes.LastIndexByte(sample, eol); n >= 0 {
		sample = sample[:n+1] // the last record may be cut
	}
	var best []reading
	for _, delimiter := range []string{",", ";", "\t", "|", "\x01"} {
		for _, quote := range []byte{'"', '\'', 0} {
			for _, escape := range []byte{0, '\\'} {
				r, ok := readWith(Dialect{Delimiter: delimiter, Quote: quote, Escape: escape, EOL: eol}, sample)
				if ok {
					best = better(best, r)
				}
			}
		}
	}
	switch len(best) {
	case 0:
		return Dialect{Delimiter: ",", Quote: '"', EOL: eol}, nil // one column reads the same with any delimiter
	case 1:
		return best[0].d, nil
	}
	var names []string
	for _, r := range best {
		names = append(names, fmt.Sprintf("%v (%d columns)", r.d, r.fields))
	}
	return Dialect{}, fmt.Errorf("the text can be read in %d ways: %s; say which with --delimiter, --quote and --escape", len(best), strings.Join(names, " or "))
}

// better keeps the readings that no other is better than. Of those that read the same, the first stays.
func better(best []reading, r reading) []reading {
	for _, b := range best {
		if b.text == r.text || b.share > r.share+0.001 {
			return best
		}
	}
	kept := best[:0]
	for _, b := range best {
		if b.share >= r.share-0.001 {
			kept = append(kept, b)
		}
	}
	return append(kept, r)
}

// readWith reads the sample. It reports false for a dialect that cannot be meant.
func readWith(d Dialect, sample []byte) (reading, bool) {
	r := reading{d: d}
	counts := map[int]int{}
	records, bad := 0, 0
	var text strings.Builder
	p := NewParser(d)
	p.Reset(sample)
	for rec, ok := p.Next(); ok; rec, ok = p.Next() {
		if rec.Bad != nil {
			if p.pos < len(sample) { // the sample may end inside the last record's quotes
				records++
				bad++
			}
			continue
		}
		records++
		counts[len(rec.Fields)]++
		for _, f := range rec.Fields {
			text.WriteString(strconv.Quote(string(f.Bytes)))
		}
		text.WriteByte('\n')
	}
	for n, c := range counts {
		if share := float64(c) / float64(records); share > r.share {
			r.fields, r.share = n, share
		}
	}
	r.text = text.String()
	return r, r.fields >= 2 && r.share >= 0.8 && bad == 0
}
