package plan

import (
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader"
)

// Shares divides the memory of the process. Its classes, each of which must be able to continue regardless of what those below
// it hold: requests in flight, rows to be tried again, the split whose turn it is, rows read back from disk, lanes, and what is
// read ahead. Rows in flight and to be tried again are counted with their lanes, in blocks; InFlight is what the requests made
// of them take beside that.
type Shares struct {
	Lanes     int64 // blocks: queued, in flight, to be tried again, read back
	ReadAhead int64 // splits and blocks before they are queued
	InFlight  int64 // bodies of requests

	// Limits of the split whose turn it is. What needs more is refused, with the --memory that it needs.
	Record int64 // text of one record
	Pages  int64 // pages and dictionaries of Parquet
	Window int64 // what a decompressor keeps of its output
}

// fixedMemory is what the process takes before it reads a row: code, stacks, connections, the rest of the heap.
const fixedMemory = 48 << 20

// defaultMemory is what a request takes that does not say.
const defaultMemory = 1 << 30

// BeyondMemory is how much more than --memory the process takes at most, an embedded store apart.
const BeyondMemory = 64 << 20

// DivideMemory says what each class may hold. Garbage that is not collected yet takes the third that is left.
func DivideMemory(memory int64) Shares {
	rows := max(memory-fixedMemory, memory/4) * 2 / 3
	return Shares{
		Lanes: rows * 6 / 10, ReadAhead: rows * 3 / 10, InFlight: rows / 10,
		Record: min(max(memory/8, 6<<20), reader.MaxRecordBytes),
		Pages:  max(memory/3, 16<<20),
		Window: max(memory/8, 8<<20),
	}
}

// MemoryForRows is the memory of a process in which rows may take so many bytes: the inverse of DivideMemory.
func MemoryForRows(bytes int64) int64 { return bytes*3/2 + fixedMemory }

// ReadingMemory is what the readers of one input may hold when the process has so much memory.
func ReadingMemory(memory int64) reader.Memory { return DivideMemory(memory).reading() }

// reading is what the readers of one input may hold.
func (s Shares) reading() reader.Memory {
	return reader.Memory{RecordBytes: int(s.Record), PageBytes: s.Pages, WindowBytes: int(s.Window), BlockBytes: int(max(s.ReadAhead/4, 1))}
}

// PagesAhead is what a parser may hold of the pages of Parquet while the turn of its split has not come.
func (s Shares) PagesAhead(parsers int) int64 { return s.ReadAhead / 2 / int64(parsers) }

// Sections is what the sections of a schedule may take, in bytes.
func (s Shares) Sections() int { return int(min(maxSections, s.ReadAhead/8)) }

const maxSections = 16 << 20

// BlockLimit is how large the blocks of one lane are made, in bytes: many of them fit its share, which is half of the
// memory for all.
func (s Shares) BlockLimit(lanes int) int {
	return int(min(max(s.Lanes/16/int64(lanes), 16<<10), 1<<20))
}

// SplitLimit is how many bytes of encoded rows one split may become; what becomes more is handed over in parts. Splits are
// read ahead, prepared, parsed and kept in order; the jobs in progress are those of the stages.
func (s Shares) SplitLimit(parsers int) int {
	return int(min(max(s.ReadAhead/int64(jobsAhead(parsers)), 64<<10), blockBytes))
}

// jobsAhead is how many splits or pieces are between the file and the queues at a time.
func jobsAhead(parsers int) int { return 2*QueueAhead*parsers + parsers + 2 }

// QueueAhead is how many jobs wait in each of the two channels between the reading stages, for each parser.
const QueueAhead = 2

// MemoryLimit is the soft limit for the garbage collector that keeps the process within memory. The binary itself, which is mapped, takes most
// of what the process may use beside memory: beside it a small load gets two of the largest rows.
func MemoryLimit(memory int64) int64 {
	return max(memory, min(memory, fixedMemory)+2*table.MaxRowBytes)
}
