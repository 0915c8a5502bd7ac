package table

// Row is a view into its Block: offsets, never a heap object. It is frozen once appended.
type Row struct {
	Hash   uint64 // of the ordering key
	key    uint32 // start of the ordering key in Block.Data; the row's PlainBuffer bytes follow it
	body   uint32
	raw    uint32 // start of the original record, after the PlainBuffer bytes; empty for formats without text
	end    uint32
	at     uint32 // start of the record in the split
	record uint32 // records before this one in the split
	line   uint32 // lines before this one in the split
	size   uint32 // accounted bytes; above ownMode the row's own mode and one
}

// RowBytes is the memory of a Row.
const RowBytes = 40

// suspect is the bit of Row.line that says that an earlier process may have sent the row. It survives spilling.
const suspect = 1 << 31

// Suspect reports whether an earlier process may have sent the row, so that it may have been or may yet be applied.
func (r *Row) Suspect() bool { return r.line&suspect != 0 }

// SetSuspect says that an earlier process may have sent the row.
func (r *Row) SetSuspect() { r.line |= suspect }

// ownMode is the first bit of the mode of a row of Changes in Row.size: no row has that many bytes.
const ownMode = 30

// Size is the row's bytes in the service's accounting.
func (r *Row) Size() int { return int(r.size & (1<<ownMode - 1)) }

// Units is the row's cost in write capacity units.
func (r *Row) Units() int { return CapacityUnits(r.Size()) }

// Mode returns the row's own mode, if it has one, else its load's.
func (r *Row) Mode(of Mode) Mode {
	if own := r.size >> ownMode; own > 0 {
		return Mode(own - 1)
	}
	return of
}

// SetMode gives the row its own mode: Put, Update or Delete.
func (r *Row) SetMode(m Mode) { r.size = uint32(r.Size()) | uint32(m+1)<<ownMode }

// Number is the number of the split's records before the row's.
func (r *Row) Number() int { return int(r.record) }

// Line is the number of the split's lines before the row's record.
func (r *Row) Line() uint32 { return r.line &^ suspect }

// Bytes is the length of the row's PlainBuffer bytes.
func (r *Row) Bytes() int { return int(r.raw - r.body) }

// Split is the part of a source that blocks come from. Its blocks share it.
type Split struct {
	Source  string
	Ordinal int // of the source in the run
	Header  int // index of the records' input header in the run
	Number  int
	Offset  int64  // in the (decompressed) input
	Input   int64  // bytes of the input that it covers
	Key     string // at its beginning, readable; empty where places are not keys

	FirstRecord int64 // records of the source before this split; known at the hand-over
	FirstLine   int64 // lines of the source before this split; known at the hand-over

	// Position is the first record's place in the order of handing over.
	Position Position
}

// Position is a place in the order of handing over: for a source read in its own order, the ordinal and the record's
// number. Sources read by a schedule are numbered together, along the schedule, as if they were the first of them.
type Position struct {
	Source int
	Record int64
}

// Block holds packed rows of one split that belong to one lane: for each row its ordering key, its PlainBuffer bytes
// and its original record. Blocks move between rooms and are spilled. One worker fills a block, which is frozen when it
// is handed over; only Pending changes afterwards, and only in the room that holds the block.
type Block struct {
	Split *Split
	Data  []byte
	Rows  []Row

	// From and To bound its records of the split: no other block has rows of its lane's keys there. A To of 0 is the end.
	From, To uint32

	Pending int // rows that keep the block in memory

	// Reusable means that the block's memory is reused once none of its rows is pending.
	Reusable bool
}

// Span is a record's place in its split.
type Span struct {
	Start, End uint32 // of its text
	Record     uint32 // records before it
	Line       uint32 // lines before it
}

// Bytes is the block's memory.
func (b *Block) Bytes() int { return cap(b.Data) + cap(b.Rows)*RowBytes }

// Reset empties the block and keeps its memory.
func (b *Block) Reset() { b.Data, b.Rows = b.Data[:0], b.Rows[:0] }

// Append makes a row of Data[key:]: the ordering key from key to body, the PlainBuffer bytes from body to the end of
// Data; the original record, or nil, is appended. size is the row's accounted bytes.
func (b *Block) Append(key, body, size int, m Span, record []byte) {
	raw := len(b.Data)
	b.Data = append(b.Data, record...)
	b.Rows = append(b.Rows, Row{
		Hash: HashKey(b.Data[key:body]),
		key:  uint32(key), body: uint32(body), raw: uint32(raw), end: uint32(len(b.Data)),
		at: m.Start, record: m.Record, line: m.Line,
		size: uint32(size),
	})
}

// AppendMade appends an existing row: its ordering key, its PlainBuffer bytes and its accounted bytes.
func (b *Block) AppendMade(key, body []byte, size int, m Span) {
	start := len(b.Data)
	b.Data = append(append(b.Data, key...), body...)
	b.Append(start, start+len(key), size, m, nil)
}

// Copy appends rows of another block, by their indices.
func (b *Block) Copy(from *Block, rows []int32) {
	for _, i := range rows {
		r := from.Rows[i]
		shift := uint32(len(b.Data)) - r.key
		b.Data = append(b.Data, from.Data[r.key:r.end]...)
		r.key, r.body, r.raw, r.end = r.key+shift, r.body+shift, r.raw+shift, r.end+shift
		b.Rows = append(b.Rows, r)
	}
}

// CopyAll copies another block's rows.
func (b *Block) CopyAll(from *Block) {
	b.Data, b.Rows = append(b.Data[:0], from.Data...), append(b.Rows[:0], from.Rows...)
}

// Keep drops every row for which keep is false; the memory of its bytes stays.
func (b *Block) Keep(keep func(i int32) bool) {
	kept := b.Rows[:0]
	for i := range b.Rows {
		if keep(int32(i)) {
			kept = append(kept, b.Rows[i])
		}
	}
	b.Rows = kept
}

// Memory is the bytes of Data of the rows with these indices.
func (b *Block) Memory(rows []int32) (n int) {
	for _, i := range rows {
		n += int(b.Rows[i].end - b.Rows[i].key)
	}
	return n
}

// Truncate drops the rows of the records from number n on, counted from 0.
func (b *Block) Truncate(n int) {
	rows := len(b.Rows)
	for rows > 0 && int(b.Rows[rows-1].record) >= n {
		rows--
	}
	b.Rows = b.Rows[:rows]
}

// Reject completes a reject of a record of the split with its origin.
func (s *Split) Reject(m Span, why Reason, raw []byte) Reject {
	return Reject{
		Location: Location{
			Source: s.Source,
			Record: s.FirstRecord + int64(m.Record) + 1,
			Line:   s.FirstLine + int64(m.Line) + 1,
			Offset: s.Offset + int64(m.Start),
			Key:    s.Key,
		},
		Reason: why,
		Raw:    raw,
	}
}

// Place is the place of the i-th row's record in its split.
func (b *Block) Place(i int32) uint32 { return b.Rows[i].record }

// Ref names one row of one block.
type Ref struct {
	Block *Block
	Index int32
}

func (r Ref) Row() *Row { return &r.Block.Rows[r.Index] }

// Memory is the row's bytes of memory in its block.
func (r Ref) Memory() int64 {
	row := r.Row()
	return int64(row.end-row.key) + RowBytes
}

// Number is the row's place among its source's records, from 0: records are numbered when their split is handed over.
func (r Ref) Number() int64 { return r.Block.Split.FirstRecord + int64(r.Row().record) }

// Position is the row's place in the order of handing over.
func (r Ref) Position() Position {
	p := r.Block.Split.Position
	p.Record += int64(r.Row().record)
	return p
}

// Key returns the row's ordering key.
func (r Ref) Key() []byte {
	row := r.Row()
	return r.Block.Data[row.key:row.body]
}

// Body returns the row's PlainBuffer bytes, header included.
func (r Ref) Body() []byte {
	row := r.Row()
	return r.Block.Data[row.body:row.raw]
}

// Within returns the place of those bytes in the block's Data.
func (r Ref) Within() (from, to uint32) {
	row := r.Row()
	return row.body, row.raw
}

// Record returns the input's record, empty for formats that are not text.
func (r Ref) Record() []byte {
	row := r.Row()
	return r.Block.Data[row.raw:row.end]
}

func (r Ref) Reject(why Reason) Reject {
	row := r.Row()
	return r.Block.Split.Reject(Span{Start: row.at, Record: row.record, Line: row.line &^ suspect}, why, r.Record())
}
