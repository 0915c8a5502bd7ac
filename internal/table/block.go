package table

// Row is a view into its Block, made of offsets. It is never allocated on its own. Once it is appended, only SetMode
// and SetSuspect change it.
type Row struct {
	Hash   uint64 // hash of the ordering key
	key    uint32 // start of the ordering key in Block.Data; the row's PlainBuffer bytes follow it
	body   uint32
	raw    uint32 // start of the original record, after the PlainBuffer bytes; it is empty for formats without text
	end    uint32
	at     uint32 // offset of the record in the split
	record uint32 // number of records before this one in the split
	line   uint32 // number of lines before this one in the split
	size   uint32 // accounted bytes; bits ownMode and above hold the row's own mode plus one, or 0
}

// RowBytes is the size of a Row in memory, in bytes.
const RowBytes = 40

// suspect is the bit of Row.line that means that an earlier process may have sent the row. Spilling preserves it.
const suspect = 1 << 31

// Suspect reports whether an earlier process may have sent the row. If so, it may have been applied, or may be later.
func (r *Row) Suspect() bool { return r.line&suspect != 0 }

// SetSuspect records that an earlier process may have sent the row.
func (r *Row) SetSuspect() { r.line |= suspect }

// ownMode is the first bit of the row's own mode in Row.size. No row is so large that its size needs these bits.
const ownMode = 30

// Size returns the row's bytes in the service's accounting.
func (r *Row) Size() int { return int(r.size & (1<<ownMode - 1)) }

// Units returns the row's cost in write capacity units.
func (r *Row) Units() int { return CapacityUnits(r.Size()) }

// Mode returns the row's own mode, or the mode of its load if it has none.
func (r *Row) Mode(of Mode) Mode {
	if own := r.size >> ownMode; own > 0 {
		return Mode(own - 1)
	}
	return of
}

// SetMode gives the row its own mode: Put, Update or Delete.
func (r *Row) SetMode(m Mode) { r.size = uint32(r.Size()) | uint32(m+1)<<ownMode }

// Number returns the number of records before the row's record in its split.
func (r *Row) Number() int { return int(r.record) }

// Line returns the number of lines before the row's record in its split.
func (r *Row) Line() uint32 { return r.line &^ suspect }

// Bytes returns the length of the row's PlainBuffer bytes.
func (r *Row) Bytes() int { return int(r.raw - r.body) }

// Split is a part of a source. All blocks made from a split share it.
type Split struct {
	Source  string
	Ordinal int // ordinal of the source in the run
	Header  int // index of the records' input header in the run
	Number  int
	Offset  int64  // offset in the decompressed input
	Input   int64  // number of bytes of the input that the split covers
	Key     string // readable key at the start of the split; empty for sources without keys

	FirstRecord int64 // number of records of the source before this split; set at the hand-over
	FirstLine   int64 // number of lines of the source before this split; set at the hand-over

	// Position is the place of the first record in the hand-over order.
	Position Position
}

// Position is a place in the hand-over order. For a source read in its own order, it is the ordinal of the source and
// the number of the record. The records of sources read by a schedule are numbered in the schedule's order, with the
// ordinal of the first source.
type Position struct {
	Source int
	Record int64
}

// Block holds packed rows of one split and one lane: each row's ordering key, PlainBuffer bytes and original record.
// Blocks move between packages and are spilled. One worker fills a block, which does not change after the hand-over,
// except for Pending, which belongs to the package that holds the block.
type Block struct {
	Split *Split
	Data  []byte
	Rows  []Row

	// From and To bound the block's records in the split; no other block of its lane has rows there. To is 0 for the end.
	From, To uint32

	Pending int // number of rows that keep the block in memory

	// Reusable means that the block's memory is reused once no row is pending.
	Reusable bool
}

// Span is a record's place in its split.
type Span struct {
	Start, End uint32 // bounds of its text in the split
	Record     uint32 // number of records before it
	Line       uint32 // number of lines before it
}

// Bytes returns the size of the block's memory.
func (b *Block) Bytes() int { return cap(b.Data) + cap(b.Rows)*RowBytes }

// Reset empties the block and keeps its memory.
func (b *Block) Reset() { b.Data, b.Rows = b.Data[:0], b.Rows[:0] }

// Append appends a row whose ordering key is Data[key:body] and whose PlainBuffer bytes are Data[body:]. It then
// appends the original record, which may be nil, to Data. size is the row's accounted bytes.
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

// AppendMade is like Append, but copies the ordering key and the PlainBuffer bytes to Data. The row has no record.
func (b *Block) AppendMade(key, body []byte, size int, m Span) {
	start := len(b.Data)
	b.Data = append(append(b.Data, key...), body...)
	b.Append(start, start+len(key), size, m, nil)
}

// Copy appends the rows of another block with the given indices.
func (b *Block) Copy(from *Block, rows []int32) {
	for _, i := range rows {
		r := from.Rows[i]
		shift := uint32(len(b.Data)) - r.key
		b.Data = append(b.Data, from.Data[r.key:r.end]...)
		r.key, r.body, r.raw, r.end = r.key+shift, r.body+shift, r.raw+shift, r.end+shift
		b.Rows = append(b.Rows, r)
	}
}

// CopyAll replaces the block's rows with those of another block.
func (b *Block) CopyAll(from *Block) {
	b.Data, b.Rows = append(b.Data[:0], from.Data...), append(b.Rows[:0], from.Rows...)
}

// Keep drops the rows for which keep returns false. It does not free their bytes.
func (b *Block) Keep(keep func(i int32) bool) {
	kept := b.Rows[:0]
	for i := range b.Rows {
		if keep(int32(i)) {
			kept = append(kept, b.Rows[i])
		}
	}
	b.Rows = kept
}

// Memory returns the number of bytes that the rows with the given indices occupy in Data.
func (b *Block) Memory(rows []int32) (n int) {
	for _, i := range rows {
		n += int(b.Rows[i].end - b.Rows[i].key)
	}
	return n
}

// Truncate drops the rows of record n and later records, counted from 0 in the split.
func (b *Block) Truncate(n int) {
	rows := len(b.Rows)
	for rows > 0 && int(b.Rows[rows-1].record) >= n {
		rows--
	}
	b.Rows = b.Rows[:rows]
}

// Reject returns the Reject for a record of the split.
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

// Place returns the number of records before row i in its split.
func (b *Block) Place(i int32) uint32 { return b.Rows[i].record }

// Ref refers to one row of a block.
type Ref struct {
	Block *Block
	Index int32
}

func (r Ref) Row() *Row { return &r.Block.Rows[r.Index] }

// Memory returns the number of bytes that the row occupies in its block.
func (r Ref) Memory() int64 {
	row := r.Row()
	return int64(row.end-row.key) + RowBytes
}

// Number returns the number, from 0, of the row's record in its source. It is valid once the split is handed over.
func (r Ref) Number() int64 { return r.Block.Split.FirstRecord + int64(r.Row().record) }

// Position returns the row's place in the hand-over order.
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

// Body returns the row's PlainBuffer bytes, including the header.
func (r Ref) Body() []byte {
	row := r.Row()
	return r.Block.Data[row.body:row.raw]
}

// Within returns the offsets of Body in the block's Data.
func (r Ref) Within() (from, to uint32) {
	row := r.Row()
	return row.body, row.raw
}

// Record returns the original record in the input. It is empty for formats that are not text.
func (r Ref) Record() []byte {
	row := r.Row()
	return r.Block.Data[row.raw:row.end]
}

func (r Ref) Reject(why Reason) Reject {
	row := r.Row()
	return r.Block.Split.Reject(Span{Start: row.at, Record: row.record, Line: row.line &^ suspect}, why, r.Record())
}
