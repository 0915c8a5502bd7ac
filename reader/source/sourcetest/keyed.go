package sourcetest

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// Keyed is an Origin of rows with a key, id. Parts are key ranges, places are keys. Live rows may change at any time.
type Keyed struct {
	Name  string
	Live  bool
	Parts int // number of parts into which Divide cuts the rows
	Page  int // number of rows in a split; 0 means 10
	// OnPage is called with the part and the first possible key of each page before it is read. It may be nil.
	OnPage func(part int, from int64) error

	mu      sync.Mutex
	rows    map[int64]string
	divided int
}

// NewKeyed returns an Origin of n rows with the keys 0, 10, 20 and so on.
func NewKeyed(name string, n int) *Keyed {
	k := &Keyed{Name: name, Parts: 1, rows: map[int64]string{}}
	for i := range n {
		k.rows[int64(10*i)] = "row " + strconv.Itoa(i)
	}
	return k
}

func (k *Keyed) Put(id int64, text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rows[id] = text
}

func (k *Keyed) Delete(id int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.rows, id)
}

// Rows returns all rows as they are now.
func (k *Keyed) Rows() map[int64]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.rows)
}

// Divided returns the number of calls to Divide.
func (k *Keyed) Divided() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.divided
}

// Position always returns the same position.
func (k *Keyed) Position() source.Position {
	return source.Position{ResumeFrom: &source.Resume{LSN: "0/1"}, SafeSince: source.Unknown + "it is a test"}
}

// Divide cuts the current keys into parts of similar size. The first and the last part are unbounded.
func (k *Keyed) Divide(context.Context) ([]byte, error) {
	ids := slices.Sorted(maps.Keys(k.Rows()))
	k.mu.Lock()
	defer k.mu.Unlock()
	k.divided++
	bounds := []int64{math.MinInt64}
	for i := 1; i < k.Parts && len(ids) > 0; i++ {
		if b := ids[i*len(ids)/k.Parts]; b > bounds[len(bounds)-1] {
			bounds = append(bounds, b)
		}
	}
	return json.Marshal(append(bounds, math.MaxInt64))
}

func (k *Keyed) Open(_ context.Context, division []byte) (parts []source.Source, err error) {
	var bounds []int64
	if err := json.Unmarshal(division, &bounds); err != nil {
		return nil, fmt.Errorf("open %s: %w", k.Name, err)
	}
	for i := range len(bounds) - 1 {
		parts = append(parts, &keyedPart{of: k, number: i, from: bounds[i], to: bounds[i+1], next: bounds[i]})
	}
	return parts, nil
}

// page returns the next rows of a part, from a key on, and the first key after these rows.
func (k *Keyed) page(p *keyedPart, from int64, most int) (page keyedPage, next int64) {
	all := k.Rows()
	next = from
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if id < from || id >= p.to {
			continue
		}
		if len(page) == most {
			break
		}
		page, next = append(page, keyedRow{id, all[id]}), id+1
	}
	return page, next
}

type keyedRow struct {
	id   int64
	text string
}

type keyedPage []keyedRow

func (keyedPage) Prepare() error { return nil }

func (p keyedPage) Bytes() int64 { return int64(100 * len(p)) }

type keyedPart struct {
	source.Pages
	of       *Keyed
	number   int
	from, to int64
	begin    source.Place
	next     int64
	splits   int // number of splits so far
}

var keyedColumns = []string{"id", "text"}

func (p *keyedPart) About() source.About {
	return source.About{
		Name: fmt.Sprintf("%s/%d", p.of.Name, p.number), Bytes: -1, Columns: keyedColumns,
		Rejects: source.Rejects{Kind: ".ndjson"}, Live: p.of.Live,
		Unique:  []source.KeyColumn{{Name: "id", Kind: record.Integer}},
		ShowKey: func(key []byte) string { return "id " + strconv.FormatInt(keyOf(key), 10) }, Pieces: 1000,
	}
}

func (p *keyedPart) Identity() (source.Identity, error) {
	if p.of.Live {
		return source.Identity{Schema: "id integer, text string"}, nil
	}
	h := fnv.New64a()
	rows, _ := p.of.page(p, p.from, math.MaxInt)
	fmt.Fprint(h, rows)
	return source.Identity{Bytes: rows.Bytes(), Content: fmt.Sprintf("%x", h.Sum64())}, nil
}

// Sample reads the first rows. It counts about a hundred bytes for each.
func (p *keyedPart) Sample(budget int, _ []string, each func(*record.Record)) (read int, err error) {
	rows, _ := p.of.page(p, p.from, max(budget/100, 1))
	rows.each(each)
	return int(rows.Bytes()), nil
}

func (p *keyedPart) Seek(to source.Place, _ source.Chain) {
	p.begin, p.next, p.splits = to, p.from, 0
	if to.Record > 0 {
		p.splits = 1
	}
	if to.Key != nil {
		p.next = max(p.from, keyOf(to.Key))
	}
}

func (p *keyedPart) Begin() source.Place { return p.begin }

func (p *keyedPart) Next() (source.Piece, error) {
	if on := p.of.OnPage; on != nil {
		if err := on(p.number, p.next); err != nil {
			return nil, fmt.Errorf("read %s: %w", p.About().Name, err)
		}
	}
	rows, next := p.of.page(p, p.next, cmp.Or(p.of.Page, 10))
	if len(rows) == 0 {
		return nil, io.EOF
	}
	p.next = next
	return rows, nil
}

func (p *keyedPart) Add(piece source.Piece) ([]source.Split, error) {
	rows := piece.(keyedPage)
	number := min(p.splits, 1)
	p.splits++
	return []source.Split{{Number: number, Bytes: rows.Bytes(), Part: rows, Key: appendKey(rows[0].id)}}, nil
}

func (p *keyedPart) Suspend() error {
	p.Seek(p.begin, source.Chain{})
	return nil
}

func (p *keyedPart) NewParser([]int) source.Parser { return keyedParser{} }

type keyedParser struct{ source.Plain }

func (keyedParser) Parse(sp source.Split, each func(*record.Record)) (records, lines int, err error) {
	rows := sp.Part.(keyedPage)
	rows.each(each)
	return len(rows), 0, nil
}

func (p keyedPage) each(each func(*record.Record)) {
	for i, row := range p {
		each(&record.Record{
			Fields: []record.Datum{{Kind: record.Integer, Int: row.id}, {Kind: record.String, Bytes: []byte(row.text)}},
			Span:   table.Span{Record: uint32(i)},
		})
	}
}

func appendKey(id int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(id)^1<<63) }

func keyOf(key []byte) int64 { return int64(binary.BigEndian.Uint64(key) ^ 1<<63) }
