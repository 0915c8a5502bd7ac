package table

// Row is a view into its Block: offsets, never a heap object of its own. It is frozen once appended.
type Row struct {
	Hash   uint64 // of the ordering key
	key    uint32 // start of the ordering key in Block.Data; the row's PlainBuffer bytes follow it
	body   uint32
	end    uint32
	raw    uint32 // start of the record in Block.Raw
	rawEnd uint32
	record uint32 // records before this one in the block
	line   uint32 // lines before this one in the block
	size   uint32 // accounted bytes
}

const rowBytes = 40 // memory of a Row

// Size returns the row's bytes in the service's size accounting.
func (r *Row) Size() int { return int(r.size) }

// Bytes returns the length of the row's PlainBuffer bytes.
func (r *Row) Bytes() int { return int(r.end - r.body) }

// Block holds the rows of one split, packed: for each row its ordering key and then its PlainBuffer bytes. Blocks
// are what moves between rooms. A block is filled by one worker and frozen when it is handed over; only Pending
// changes afterwards, and only in the room that holds the block.
type Block struct {
	Source  string
	Header  int // which of the run's input headers the records belong to
	Split   int
	Data    []byte
	Rows    []Row
	Raw     []byte // the split as it stood in the input
	Offset  int64  // of Raw in the input
	Input   int64  // bytes of the input that the split stands for
	Rejects []BlockReject
	Records int // records in the split, rejected ones included
	Lines   int // lines in the split

	FirstRecord int64 // records of the source before this split; known at the hand-over
	FirstLine   int64 // lines of the source before this split; known at the hand-over

	Pending int // rows not final yet
}

// BlockReject is a record of the block that the reader or the encoder refused.
type BlockReject struct {
	Mark   Mark
	Reason Reason
	Raw    []byte // of formats that are no text: the record as JSON
}

// Mark is a record's place in its block.
type Mark struct {
	Start, End uint32 // in Block.Raw
	Record     uint32 // records before it in the block
	Line       uint32 // lines before it in the block
}

// Bytes returns the memory the block holds.
func (b *Block) Bytes() int { return cap(b.Data) + cap(b.Raw) + cap(b.Rows)*rowBytes }

// Append makes a row of Data[key:]: the ordering key from key up to body, the PlainBuffer bytes from body to the
// end of Data. Size is the row's accounted bytes.
func (b *Block) Append(key, body, size int, m Mark) {
	b.Rows = append(b.Rows, Row{
		Hash: HashKey(b.Data[key:body]),
		key:  uint32(key), body: uint32(body), end: uint32(len(b.Data)),
		raw: m.Start, rawEnd: m.End, record: m.Record, line: m.Line,
		size: uint32(size),
	})
}

// RejectAt refuses the record at m.
func (b *Block) RejectAt(m Mark, why Reason) {
	b.Rejects = append(b.Rejects, BlockReject{Mark: m, Reason: why})
}

// Reject completes the i-th reject of the block with its origin and record.
func (b *Block) Reject(i int) Reject {
	r := &b.Rejects[i]
	full := b.reject(r.Mark, r.Reason)
	if r.Raw != nil {
		full.Raw = r.Raw
	}
	return full
}

func (b *Block) reject(m Mark, why Reason) Reject {
	return Reject{
		Origin: Origin{
			Source: b.Source,
			Record: b.FirstRecord + int64(m.Record) + 1,
			Line:   b.FirstLine + int64(m.Line) + 1,
			Offset: b.Offset + int64(m.Start),
		},
		Reason: why,
		Raw:    b.Raw[m.Start:m.End],
	}
}

// Truncate drops every row and reject from the record with n records before it on.
func (b *Block) Truncate(n int) {
	rows := len(b.Rows)
	for rows > 0 && int(b.Rows[rows-1].record) >= n {
		rows--
	}
	b.Rows = b.Rows[:rows]
	rejects := len(b.Rejects)
	for rejects > 0 && int(b.Rejects[rejects-1].Mark.Record) >= n {
		rejects--
	}
	b.Rejects = b.Rejects[:rejects]
	b.Records = min(b.Records, n)
}

// Ref names one row of one block.
type Ref struct {
	Block *Block
	Index int32
}

// Row returns the row.
func (r Ref) Row() *Row { return &r.Block.Rows[r.Index] }

// Key returns the row's ordering key.
func (r Ref) Key() []byte {
	row := r.Row()
	return r.Block.Data[row.key:row.body]
}

// Body returns the row's PlainBuffer bytes, header included.
func (r Ref) Body() []byte {
	row := r.Row()
	return r.Block.Data[row.body:row.end]
}

// Reject makes a reject of the row.
func (r Ref) Reject(why Reason) Reject {
	row := r.Row()
	return r.Block.reject(Mark{Start: row.raw, End: row.rawEnd, Record: row.record, Line: row.line}, why)
}
