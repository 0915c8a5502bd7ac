package csv

import "bytes"

// State is a state in which a chunk may begin.
type State uint8

const (
	AtField   State = iota // at the start of a field or record
	InField                // in a field, outside quotes
	InQuotes               // inside quotes
	PastQuote              // after a quote inside quotes: a second quote is data, anything else ends the quoted part
	Escaped                // after an escape character: the next byte is data
	states
)

// Scan is the result of scanning a chunk for each state in which it may begin.
type Scan struct {
	First [states]int // offset after the first record end, or -1 if there is none
	End   [states]State
}

// Scan scans one chunk. The dialect must be Parallel.
func (d *Dialect) Scan(chunk []byte) Scan {
	var s Scan
	if len(chunk) == 0 {
		for i := range s.First {
			s.First[i], s.End[i] = -1, State(i)
		}
		return s
	}
	if d.Escape != 0 && d.Escapes.coverEnds() {
		return d.scanEscapes(chunk)
	}
	if d.Quote == 0 {
		c := cursor{first: -1}
		c.run(d, chunk)
		for i := range s.First {
			s.First[i], s.End[i] = c.first, c.end
		}
		return s
	}
	plain, quoted := d.scanBoth(chunk)
	s.First[InField], s.End[InField] = plain.first, plain.end
	s.First[InQuotes], s.End[InQuotes] = quoted.first, quoted.end
	if chunk[0] == d.Quote {
		// After AtField the quote opens a field; after PastQuote it is data. Either way, the chunk continues inside quotes.
		plain = cursor{i: 1, quoted: true, first: -1}
		plain.run(d, chunk)
	}
	s.First[AtField], s.End[AtField] = plain.first, plain.end
	s.First[PastQuote], s.End[PastQuote] = plain.first, plain.end
	return s
}

// scanEscapes scans a chunk of a dialect with escapes but no quotes. The start states differ only for the first byte.
func (d *Dialect) scanEscapes(chunk []byte) (s Scan) {
	first, end := d.scanFrom(chunk, 0)
	for i := range s.First {
		s.First[i], s.End[i] = first, end
	}
	s.First[Escaped], s.End[Escaped] = d.scanFrom(chunk, 1)
	return s
}

// scanFrom scans a chunk whose bytes before from are data.
func (d *Dialect) scanFrom(chunk []byte, from int) (first int, end State) {
	escaped := func(at int) bool { // whether an odd number of escapes precedes at
		run := 0
		for at-run > from && chunk[at-run-1] == d.Escape {
			run++
		}
		return run%2 == 1
	}
	first, end = -1, InField
	if escaped(len(chunk)) {
		end = Escaped
	}
	for at := from; at < len(chunk); at++ {
		n := bytes.IndexByte(chunk[at:], d.eol())
		if n < 0 {
			break
		}
		if at += n; !escaped(at) {
			return at + 1, end
		}
	}
	return first, end
}

// scanBoth scans a chunk from inside a field and from inside quotes. Once the two states agree, it scans only once.
func (d *Dialect) scanBoth(chunk []byte) (plain, quoted cursor) {
	plain, quoted = cursor{first: -1}, cursor{quoted: true, first: -1}
	for !plain.done && !quoted.done {
		if plain.i == quoted.i && plain.quoted == quoted.quoted {
			both := cursor{i: plain.i, quoted: plain.quoted, first: -1}
			both.run(d, chunk)
			plain.meet(both)
			quoted.meet(both)
			return plain, quoted
		}
		if plain.i < quoted.i {
			plain.step(d, chunk)
		} else {
			quoted.step(d, chunk)
		}
	}
	plain.run(d, chunk)
	quoted.run(d, chunk)
	return plain, quoted
}

// cursor moves through a chunk from quote to quote.
type cursor struct {
	i      int // next byte
	quoted bool
	first  int // offset after the first record end; -1 if none was found yet
	done   bool
	end    State
}

func (c *cursor) run(d *Dialect, chunk []byte) {
	for !c.done {
		c.step(d, chunk)
	}
}

// meet adopts the results of another cursor, from the position where both have the same state.
func (c *cursor) meet(other cursor) {
	if c.first < 0 {
		c.first = other.first
	}
	c.done, c.end = true, other.end
}

// step moves to the next quote that opens or closes a field, or to the end of the chunk.
func (c *cursor) step(d *Dialect, chunk []byte) {
	if c.quoted {
		i, end := d.closingQuote(chunk, c.i)
		if i < 0 {
			c.done, c.end = true, end
			return
		}
		c.i, c.quoted = i, false
		return
	}
	q := len(chunk)
	if d.Quote != 0 {
		if n := bytes.IndexByte(chunk[c.i:], d.Quote); n >= 0 {
			q = c.i + n
		}
	}
	if c.first < 0 {
		if n := bytes.IndexByte(chunk[c.i:q], d.eol()); n >= 0 {
			c.first = c.i + n + 1
		}
	}
	// For this cursor, the first byte of the chunk is inside a field.
	starts := q > 0 && (chunk[q-1] == d.Delimiter[0] || chunk[q-1] == d.eol())
	if q == len(chunk) {
		c.done, c.end = true, InField
		if starts {
			c.end = AtField
		}
		return
	}
	c.i, c.quoted = q+1, starts // a quote elsewhere in a field is text
}

// closingQuote returns the offset after the quote that closes the field at i, or -1 if it is not in the chunk.
func (d *Dialect) closingQuote(chunk []byte, i int) (int, State) {
	for {
		n := bytes.IndexByte(chunk[i:], d.Quote)
		if n < 0 {
			return -1, InQuotes
		}
		i += n + 1
		if i == len(chunk) {
			return -1, PastQuote
		}
		if chunk[i] != d.Quote {
			return i, InField
		}
		i++
	}
}

// Stitcher takes the chunks of a text in order and returns splits of whole records.
type Stitcher struct {
	state   State
	pending []byte // text after the last complete record
	begun   bool
}

// Add takes ownership of the next chunk. It returns the records that the chunk completes, or nil.
func (s *Stitcher) Add(chunk []byte, scan Scan) []byte {
	first := scan.First[s.state]
	s.state = scan.End[s.state]
	if !s.begun {
		s.begun = true
		s.pending = chunk
		return nil
	}
	if first < 0 {
		s.pending = append(s.pending, chunk...)
		return nil
	}
	split := append(s.pending, chunk[:first]...)
	s.pending = chunk[first:]
	if len(split) == 0 {
		return nil
	}
	return split
}

// Pass skips a record in the next chunk. It returns the number of the record's bytes, and whether they include its end.
func (s *Stitcher) Pass(chunk []byte, scan Scan) (n int, ended bool) {
	first := scan.First[s.state]
	s.state = scan.End[s.state]
	if first < 0 {
		return len(chunk), false
	}
	s.pending = chunk[first:]
	return first, true
}

// Keep puts back the unfinished record with which the text returned by Rest ends.
func (s *Stitcher) Keep(pending []byte) { s.pending = pending }

// Quoted reports whether the text so far ends inside quotes.
func (s *Stitcher) Quoted() bool { return s.state == InQuotes }

// Pending returns the number of bytes of incomplete records.
func (s *Stitcher) Pending() int { return len(s.pending) }

// Rest returns the text of the incomplete record after the last chunk.
func (s *Stitcher) Rest() []byte {
	rest := s.pending
	s.pending = nil
	return rest
}
