package sqltable

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/ratelimit"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// part is a range of a table's keys, or the rows with certain keys.
type part struct {
	source.Pages
	of       *Origin
	t        *Table
	ctx      context.Context // ends the reading if cancelled
	number   int
	name     string
	from, to [][]byte
	only     [][][]byte // keys still to be read, in place of a range; nil for a range

	begin    source.Place
	bytes    int // size of a page in bytes; 0 means pageBytes
	closed   bool
	progress progress
}

// progress is the state of reading a part.
type progress struct {
	begun, ended bool
	next         [][]byte // key at which the next page begins; nil for the start of the part
	past         bool     // whether the next page begins after that key
	splits       int      // number of splits so far
	row          int      // approximate bytes per row; 0 if unknown
}

// The approximate size of a page in bytes, and the largest number of rows in a page and in a part's first page.
const (
	pageBytes   = 1 << 20
	maxPageRows = 20_000
	firstRows   = 200
)

func (p *part) About() source.About {
	t := p.t
	a := source.About{
		Name: p.name, Bytes: -1, Live: true, Pieces: 2 * int64(cmp.Or(p.bytes, pageBytes)),
		Rejects: source.Rejects{Kind: ".ndjson"},
		ShowKey: p.showPlace, GiveBack: func(sp source.Split) { sp.Part.(*page).reuse() },
	}
	if a.Declared = new(source.Declared); p.of.cfg.Shards == nil {
		a.AlsoUnique = t.Unique // in several shards, keys are unique only together with the shard
	}
	for _, c := range t.Columns {
		a.Columns, a.Declared.Types = append(a.Columns, c.Name), append(a.Declared.Types, c.Type)
	}
	for _, k := range t.Key {
		a.Unique = append(a.Unique, source.KeyColumn{Name: t.Columns[k].Name, Kind: t.Columns[k].Kind})
		a.Declared.Key = append(a.Declared.Key, t.Columns[k].Name)
	}
	return a
}

func (p *part) showPlace(place []byte) string {
	key, err := placeValues(place)
	if err != nil || len(key) != len(p.t.Key) {
		return "an unreadable key"
	}
	return p.t.show(key)
}

// show formats a key for users.
func (t *Table) show(key [][]byte) string {
	parts := make([]string, len(key))
	for i, v := range key {
		parts[i] = t.Columns[t.Key[i]].Name + " " + table.Show(v)
	}
	return strings.Join(parts, ", ")
}

// Identity identifies the table and its server by the schema, which includes the order of keys.
func (p *part) Identity() (source.Identity, error) { return source.Identity{Schema: p.t.Schema}, nil }

// Sample reads the first rows, outside of the snapshot unless that is a Moment. It leaves read errors to the load.
func (p *part) Sample(budget int, _ []string, each func(*record.Record)) (read int, err error) {
	if err := p.of.describe(p.ctx); err != nil {
		return 1, nil // the load will report the error
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	parser := p.NewParser(nil)
	look := &part{of: p.of, t: p.t, ctx: p.ctx, from: p.from, to: p.to}
	for read < budget {
		var pg *page
		err := p.of.looking(p.ctx, func(ctx context.Context, by Session) (err error) {
			pg, err = look.page(ctx, by)
			return err
		})
		if err != nil {
			return max(read, 1), nil // the load will report the error
		}
		if pg.rows == 0 {
			return read, nil
		}
		if _, _, err := parser.Parse(source.Split{Part: pg}, each); err != nil {
			return max(read, 1), err
		}
		read += len(pg.text)
	}
	return read, nil
}

// SetSplitBytes sets the approximate size of a page.
func (p *part) SetSplitBytes(n int) { p.bytes = n }

func (p *part) Seek(to source.Place, _ source.Chain) {
	if p.progress.ended && !p.closed {
		p.of.reads(1)
	}
	p.begin, p.progress = to, progress{}
	if to.Record > 0 {
		p.progress.splits = 1
	}
}

func (p *part) Begin() source.Place { return p.begin }

// Next reads the next page, in another session if the current one is lost.
func (p *part) Next() (source.Piece, error) {
	if !p.progress.begun {
		p.progress.begun = true
		if p.begin.Key != nil {
			key, err := placeValues(p.begin.Key)
			if err != nil || len(key) != len(p.t.Key) {
				return nil, fmt.Errorf("read %s: %w", p.name, errPlace)
			}
			p.progress.next = key
		}
	}
	if p.progress.ended {
		return nil, io.EOF
	}
	var since time.Time
	defer func() {
		if !since.IsZero() {
			p.of.outage.failing.Add(-1)
		}
	}()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		pg, err := p.tryPage()
		switch {
		case err == nil && pg.rows == 0:
			p.progress.ended = true
			p.of.reads(-1)
			return nil, io.EOF
		case err == nil:
			return pg, nil
		case p.ctx.Err() != nil:
			return nil, context.Cause(p.ctx)
		case final(err) || !p.of.cfg.Server.Lost(err):
			if !p.of.cfg.Server.Lost(err) || errors.As(err, new(*claimError)) || errors.As(err, new(*RowTooLarge)) {
				err = &source.Lasting{Err: err}
			}
			return nil, fmt.Errorf("read %s: %w", p.name, err)
		}
		if now := time.Now(); since.IsZero() {
			since = now
			p.of.outage.failing.Add(1)
		} else if now.Sub(since) > p.of.cfg.RetryFor {
			return nil, fmt.Errorf("read %s: no session could read for %v (--retry-for): %w; resume when the server answers",
				p.name, p.of.cfg.RetryFor, err)
		}
		p.of.tell(since, err)
		if err := ratelimit.Wait(p.ctx, wait); err != nil {
			return nil, err
		}
	}
}

func (p *part) tryPage() (*page, error) {
	if pace := p.of.pace; pace != nil {
		if err := pace.wait(p.ctx); err != nil {
			return nil, err
		}
	}
	if p.of.lag != nil {
		if err := p.of.lag.wait(p.ctx); err != nil {
			return nil, err
		}
	}
	s := p.of.sessions()
	one, err := s.borrow(p.ctx, p.of.only())
	if err != nil {
		return nil, err
	}
	from := "its first row"
	if p.progress.next != nil {
		from = p.t.show(p.progress.next)
	} else if p.from != nil {
		from = p.t.show(p.from)
	}
	pg, err := p.of.pageBy(p, one)
	if err != nil {
		p.of.failed(s, one, err)
		return nil, err
	}
	p.of.done.noted.note(one.of, p.number, p.name+" from "+from+" on")
	s.giveBack(one)
	if p.of.pace != nil {
		p.of.pace.took(pg.rows)
	}
	return pg, nil
}

// keyAt is the position of a key value in the text of a page: key columns may be anywhere in a row.
type keyAt struct{ from, to int }

// key returns a copy of a key's values, because the text of the page may still be moved.
func (pg *page) key(at []keyAt) [][]byte {
	values := make([][]byte, len(at))
	for i, a := range at {
		if a.from >= 0 {
			values[i] = append([]byte{}, pg.text[a.from:a.to]...) // an empty value must not become nil, which means null
		}
	}
	return values
}

// add adds a row and sets at to the positions of its key values.
func (pg *page) add(values [][]byte, at []keyAt) {
	for i, v := range values {
		if v == nil {
			pg.text = append(pg.text, 0)
			if k := pg.of.inKey[i]; k >= 0 {
				at[k] = keyAt{-1, -1}
			}
			continue
		}
		pg.text = binary.AppendUvarint(pg.text, uint64(len(v))+1)
		from := len(pg.text)
		pg.text = append(pg.text, v...)
		if k := pg.of.inKey[i]; k >= 0 {
			at[k] = keyAt{from, len(pg.text)}
		}
	}
	if pg.rows++; pg.first == nil {
		pg.first = pg.key(at)
	}
}

// page reads the next rows of the part.
func (p *part) page(ctx context.Context, by Session) (*page, error) {
	if p.only != nil {
		return p.pageOfKeys(ctx, by)
	}
	t := p.t
	q := Query{Lower: p.progress.next, Past: p.progress.past, Upper: p.to, Limit: firstRows}
	budget := cmp.Or(p.bytes, pageBytes)
	if p.progress.row > 0 {
		q.Limit = min(max(budget/p.progress.row, 1), maxPageRows)
	}
	if p.of.pace != nil {
		q.Limit = min(q.Limit, p.of.pace.limit())
	}
	if q.Lower == nil {
		q.Lower = p.from
	}
	rows, err := by.Page(ctx, t, q)
	if err != nil {
		return nil, err
	}
	pg := &page{of: t, text: newText(budget)}
	at := make([]keyAt, len(t.Key))
	var before [][]byte
	if q.Past {
		before = p.progress.next
	}
	// If rows are larger than expected, the rest of them is left to the next page.
	for (len(pg.text) <= budget || pg.rows == 0) && rows.Next() {
		values := rows.Values()
		if err := p.fits(values); err != nil {
			_ = rows.Close()
			return nil, p.after(err, pg, at)
		}
		pg.add(values, at)
		if t.Claimed {
			last := pg.key(at)
			if err := p.checkClaim(before, last); err != nil {
				_ = rows.Close()
				return nil, err
			}
			before = last
		}
	}
	if err := rows.Close(); err != nil {
		return nil, p.after(err, pg, at)
	}
	pg.bytes = int64(cap(pg.text))
	if n := pg.rows; n > 0 {
		p.progress.next, p.progress.past, p.progress.row = pg.key(at), true, max(len(pg.text)/n, 16)
	}
	return pg, nil
}

func (p *part) fits(values [][]byte) error {
	most := p.of.cfg.MaxRow
	if most == 0 {
		return nil
	}
	var bytes int64
	for _, v := range values {
		bytes += int64(len(v))
	}
	if bytes > most {
		return &RowTooLarge{bytes, most}
	}
	return nil
}

// after adds the key of the preceding row to an error about a row.
func (p *part) after(err error, pg *page, at []keyAt) error {
	if p.of.cfg.Server.Lost(err) && !errors.As(err, new(*RowTooLarge)) {
		return err
	}
	key := p.progress.next
	if pg.rows > 0 {
		key = pg.key(at)
	}
	if key == nil {
		return fmt.Errorf("the first row: %w", err)
	}
	return fmt.Errorf("after the row %s: %w", p.t.show(key), err)
}

// checkClaim returns an error if the key of a row has a null, is too long or equals the key of the row before.
func (p *part) checkClaim(before, key [][]byte) error {
	for i, v := range key {
		if v == nil {
			return &claimError{fmt.Sprintf("a row of the query has no %s, which is in key= of its address: after an "+
				"interruption it would be unknown whether it was loaded; name columns that are never null",
				p.t.Columns[p.t.Key[i]].Name)}
		}
		if n := p.t.MaxKey; n > 0 && len(v) > n {
			return &claimError{fmt.Sprintf("a row of the query has a %s of %d bytes, but the server sorts by the first %d; "+
				"name another column in key= of its address", p.t.Columns[p.t.Key[i]].Name, len(v), n)}
		}
	}
	if before != nil && slices.EqualFunc(before, key, bytes.Equal) {
		return &claimError{fmt.Sprintf("two rows of the query have the key %s: one would replace the other; name in key= of "+
			"its address columns that distinguish all rows", p.t.show(key))}
	}
	return nil
}

func (p *part) Add(piece source.Piece) ([]source.Split, error) {
	pg := piece.(*page)
	number := min(p.progress.splits, 1)
	p.progress.splits++
	place := appendPlace(nil, pg.first)
	if len(place) > source.MaxKey {
		return nil, fmt.Errorf("read %s: a key of %d bytes is too long to save as a position", p.name, len(place))
	}
	return []source.Split{{Number: number, Bytes: int64(len(pg.text)), Part: pg, Key: place}}, nil
}

func (p *part) Suspend() error {
	p.Seek(p.begin, source.Chain{})
	return nil
}

// Close closes the part. The last part to be closed ends the sessions.
func (p *part) Close() error {
	if !p.closed {
		p.closed = true
		if !p.progress.ended {
			p.progress.ended = true
			p.of.reads(-1)
		}
		p.of.closed()
	}
	return nil
}

// A stored place holds the values of a key in the server's notation, each preceded by its length.

func appendPlace(dst []byte, key [][]byte) []byte {
	for _, v := range key {
		dst = append(binary.AppendUvarint(dst, uint64(len(v))), v...)
	}
	return dst
}

var errPlace = errors.New("a saved key cannot be decoded")

func placeValues(place []byte) (key [][]byte, err error) {
	for len(place) > 0 {
		length, n := binary.Uvarint(place)
		if n <= 0 || length > uint64(len(place)-n) {
			return nil, errPlace
		}
		key, place = append(key, place[n:n+int(length):n+int(length)]), place[n+int(length):]
	}
	return key, nil
}
