package intake

import (
	"context"
	"slices"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/encode"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// parser is one worker of the flow. It prepares pieces, and makes rows of the records of splits.
type parser struct {
	flow    *Flow
	encoder *encode.Encoder
	sources map[*plan.Source]*sourceParser
	kept    *rejectWriter // writes rejected records
	memory  plan.Shares

	rows       table.Block // rows of the current split; the memory is reused
	byLane     [][]int32
	fields     []byte            // form in which the last record is kept
	names      map[string]string // table names
	cells      *cells            // nil if records do not describe themselves or rows are deleted
	anyOrder   bool              // splits of all sources may arrive in any order
	keyed      map[*plan.Source]*sourceParser
	changed    bool // self-describing records that rows do not reproduce
	asTheyCame bool // rows read from tables are appended unchanged if possible
}

// sourceParser is a worker's state for a source.
type sourceParser struct {
	parser  source.Parser
	values  *values
	columns []string // the source's columns
	showKey func([]byte) string
	waits   bool // its pages take so much memory that only one parser may read it at once
}

func newParser(f *Flow) *parser {
	r := f.plan.Request
	encoder := encode.New(f.plan.Schema, r.Mode, r.DeleteNull)
	encoder.Window = f.plan.Window()
	if _, _, expires := f.plan.Expiry(); expires && encoder.Window != nil {
		window := encoder.Window
		encoder.Window = func() (from, to int64) { // older cells are left out, here or by the writer
			_, to = window()
			return 0, to
		}
	}
	switch r.Keep {
	case plan.KeepKey:
		encoder.Body = encode.NoBody
	case plan.KeepKeyFields:
		encoder.Body = encode.HashedBody
	}
	if by := f.Sums.By; by != nil && f.Sums.Keeps {
		encoder.Sums(by, encode.KeptBody)
	} else if by != nil {
		encoder.Sums(by, encode.SummedBody)
	}
	reserve(encoder, f.plan)
	made := &parser{
		flow: f, encoder: encoder, memory: f.plan.Shares(), sources: map[*plan.Source]*sourceParser{},
		keyed: map[*plan.Source]*sourceParser{}, names: map[string]string{}, kept: newRejectWriter(f.plan),
		cells: newCells(f.plan), changed: f.plan.Wide && !f.plan.AsItIs(),
	}
	keep := r.Keep == plan.KeepRecord || r.Keep == plan.KeepNothing
	made.asTheyCame = made.cells != nil && made.cells.window == nil && !made.changed && keep && r.Mode == table.Put &&
		r.When == nil && encoder.Body == encode.WholeBody
	return made
}

// run prepares pieces and processes splits until there is no more work.
func (p *parser) run(ctx context.Context, work <-chan *job, parse func(context.Context, *job)) error {
	for {
		j, ok := receive(ctx, work)
		if !ok {
			return nil
		}
		if j.piece != nil {
			j.prepared <- j.piece.Prepare() // never blocks, as it is buffered
			continue
		}
		parse(ctx, j)
	}
}

func (p *parser) close() {
	letGo(p.sources)
	letGo(p.keyed)
}

func letGo(all map[*plan.Source]*sourceParser) {
	for s, sp := range all {
		_ = sp.parser.Close() // nothing was written that could be lost
		delete(all, s)
	}
}

// maxParsers is the maximum number of parsers that a worker keeps. If sources are read in order, it keeps one.
const maxParsers = 64

// forSource returns the worker's parser for a source. It closes the parsers of other sources if there are too many.
func (p *parser) forSource(s *plan.Source) (*sourceParser, error) {
	if sp := p.sources[s]; sp != nil {
		return sp, nil
	}
	if len(p.sources) >= maxParsers || !p.flow.plan.Parallel && !p.anyOrder {
		letGo(p.sources)
	}
	v, err := newValues(p.flow.plan, s)
	if err != nil {
		return nil, err
	}
	used, columns := v.converter.Fields(), s.About().Columns
	if p.flow.plan.Wide { // a reject has all fields
		used = used[:0]
		for i := range columns {
			used = append(used, i)
		}
	}
	sp := &sourceParser{parser: s.NewParser(used), values: v, columns: columns, showKey: s.About().ShowKey}
	p.sources[s] = sp
	return sp, nil
}

// forKeys returns the worker's parser for the ordering keys of a source's records.
func (p *parser) forKeys(s *plan.Source) (*sourceParser, error) {
	if sp := p.keyed[s]; sp != nil {
		return sp, nil
	}
	if len(p.keyed) >= maxParsers {
		letGo(p.keyed)
	}
	v, err := newValues(p.flow.plan, s)
	if err != nil {
		return nil, err
	}
	v.keysOnly()
	sp := &sourceParser{parser: s.NewParser(v.converter.Fields()), values: v}
	p.keyed[s] = sp
	return sp, nil
}

// row appends the record's row to the split's rows, or returns why there is none. It gives values their types (values),
// makes the cells of a self-describing record (cells), keeps the record if required, and encodes the row (encoder).
func (p *parser) row(v *values, columns []string, rec *record.Record, raw []byte) (archived bool, why *table.Reason) {
	p.encoder.Table = ""
	if p.flow.plan.Request.Mode == table.Changes && rec.Bad == nil {
		p.encoder.As(rec.Mode)
	}
	if made := rec.Row; made != nil {
		p.rows.AppendMade(made.Key, made.Body, made.Size, rec.Span)
		return false, nil
	}
	if rec.Packed != nil {
		if raw == nil && p.passThrough(v, rec) {
			return false, nil
		}
		rec.Unpack()
	}
	of, why := v.of(rec)
	if why != nil {
		return false, why
	}
	if of.table != nil {
		p.encoder.Table = p.tableName(of.table)
	}
	if of.archived {
		return true, nil
	}
	if p.cells != nil {
		if p.encoder.Cells, why = p.cells.make(v, rec); why != nil {
			return false, why
		}
	}
	if p.flow.plan.Request.When != nil {
		if why := p.flow.plan.Lacks(func(column string) bool { return p.has(column, of.row) }); why != nil {
			return false, why
		}
	}
	return false, p.encoder.Append(&p.rows, of.row, of.stamps, rec.Span, p.keep(v, columns, rec, raw))
}

// keep returns what is kept of a record with its row. raw is its form in the input.
func (p *parser) keep(v *values, columns []string, rec *record.Record, raw []byte) []byte {
	switch p.flow.plan.Request.Keep {
	case plan.KeepNothing, plan.KeepKey:
		return nil
	case plan.KeepKeyFields:
		if v.makers == nil {
			return nil // the key determines its fields
		}
		p.fields = v.appendKeyFields(p.fields[:0])
		return p.fields
	}
	if raw == nil && (p.changed || p.cells != nil && p.cells.left) {
		p.fields = p.kept.appendRecord(p.fields[:0], columns, rec)
		return p.fields
	}
	return raw
}

// has reports whether the record's row has a value in a column. values has those of the schema's columns.
func (p *parser) has(column string, values []table.Value) bool {
	for i, c := range p.flow.plan.Schema.Columns {
		if c.Name == column {
			return values[i].Type != table.Null
		}
	}
	return p.cells != nil && slices.ContainsFunc(p.encoder.Cells,
		func(c encode.Cell) bool { return c.Name.String() == column && c.Value.Type != table.Null })
}

// tableName returns a table's name as a string, allocated once per name.
func (p *parser) tableName(name []byte) string {
	if s, ok := p.names[string(name)]; ok {
		return s
	}
	if len(p.names) >= maxNames {
		clear(p.names)
	}
	s := string(name)
	p.names[s] = s
	return s
}

// maxNames limits the table names that a parser remembers.
const maxNames = 4096

// divide copies the rows of a split to blocks of their lanes, each just large enough.
func (p *parser) divide(made *Parsed) {
	m := p.flow.partitions.Load()
	made.Partitions = m
	if p.flow.Lends && m.Len() == 1 {
		p.lend(made)
		return
	}
	for len(p.byLane) < m.Len() {
		p.byLane = append(p.byLane, nil)
	}
	for i := range p.rows.Rows {
		lane := m.Find(table.Ref{Block: &p.rows, Index: int32(i)}.Key())
		p.byLane[lane] = append(p.byLane[lane], int32(i))
	}
	limit := p.memory.BlockLimit(m.Len())
	for lane, rows := range p.byLane {
		p.byLane[lane] = rows[:0]
		from := uint32(0) // a lane's first block also covers what precedes its rows in the split, the last what follows them
		for len(rows) > 0 {
			n := len(rows)
			size := p.rows.Memory(rows)
			if size > limit {
				n = max(1, n*limit/size)
				size = p.rows.Memory(rows[:n])
			}
			b := &table.Block{Split: made.Split, Data: make([]byte, 0, size), Rows: make([]table.Row, 0, n)}
			b.Copy(&p.rows, rows[:n])
			made.Blocks = append(made.Blocks, LaneBlock{lane, b})
			rows = rows[n:]
			b.From, b.To = from, uint32(made.Records)
			if len(rows) > 0 {
				b.To = p.rows.Place(rows[0])
			}
			from = b.To
		}
	}
	if kept := p.rows.Bytes(); kept > 4*p.memory.SplitLimit(p.flow.plan.Request.Read.Workers()) {
		p.rows = table.Block{} // do not retain the memory of one enormous row
	}
}

// setAside sets aside the block of the rows made so far, and takes another one.
func (m *partMaker) setAside() {
	most := 2 * m.memory.BlockLimit(1)
	b := m.flow.free.take(min(cap(m.rows.Data), most), cap(m.rows.Rows))
	*b, m.rows = m.rows, *b
	b.Reusable = cap(b.Data) <= most // do not retain the memory of one enormous row
	m.full = append(m.full, b)
	m.aside += len(b.Data) + len(b.Rows)*table.RowBytes
}

// together hands over the part's rows, for one lane, in the blocks where they were made, but copies a mostly empty one.
func (m *partMaker) together() {
	made := m.made
	made.Partitions = m.under
	if n := len(m.rows.Rows); 2*len(m.rows.Data) > cap(m.rows.Data) {
		m.setAside()
	} else if n > 0 {
		b := &table.Block{Data: make([]byte, 0, len(m.rows.Data)), Rows: make([]table.Row, 0, n)}
		b.CopyAll(&m.rows)
		m.full = append(m.full, b)
	}
	from := uint32(0)
	for i, b := range m.full {
		b.Split, b.From, b.To = made.Split, from, uint32(made.Records)
		if i+1 < len(m.full) {
			b.To = m.full[i+1].Place(0)
		}
		from = b.To
		made.Blocks = append(made.Blocks, LaneBlock{0, b})
	}
	clear(m.full)
	if kept := m.rows.Bytes(); kept > 4*m.memory.SplitLimit(m.flow.plan.Request.Read.Workers()) {
		m.rows = table.Block{}
	}
}

// lend hands over the block where the rows were made, and takes another one.
func (p *parser) lend(made *Parsed) {
	b, _ := p.flow.lent.Get().(*table.Block)
	if b == nil {
		b = new(table.Block)
	}
	*b, p.rows = p.rows, *b
	b.Split, b.From, b.To = made.Split, 0, uint32(made.Records)
	made.Blocks = append(made.Blocks, LaneBlock{0, b})
	made.lent = &p.flow.lent
}

// reserve makes the encoder leave room for what is added to rows when they are sent.
func reserve(e *encode.Encoder, p *plan.Plan) {
	if p.Mark != "" {
		e.Reserve, e.ReserveCells = len(p.Mark)+table.MaxMarkBytes, 1
	}
	if p.Restamp {
		e.StampBytes = 8
	}
}

// passThrough appends a row of a table unchanged if that is possible, and reports whether it did.
func (p *parser) passThrough(v *values, rec *record.Record) bool {
	row, why := v.rowValues(rec)
	if why != nil || !p.encoder.AppendPacked(&p.rows, row, rec.Span, rec.Packed, nil, p.cells.unchanged) {
		return false
	}
	p.cells.left, p.cells.expired = false, 0
	return true
}
