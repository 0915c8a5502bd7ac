package plan

import (
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader"
)

// Shares divides the memory of the process. Each class must be able to continue whatever the classes after it hold:
// requests in flight, rows to be retried, the split whose turn it is, rows read back from disk, lanes, and data read
// ahead. Rows in flight and to be retried count with their lanes, in blocks; InFlight is for their requests.
type Shares struct {
	Lanes     int64 // blocks: queued, in flight, to be retried, read back
	ReadAhead int64 // splits and blocks before the queues
	InFlight  int64 // bodies of requests

	// Limits of the split whose turn it is. Anything larger is refused, with the --memory it needs.
	Record int64 // text of one record
	Pages  int64 // pages and dictionaries of Parquet
	Window int64 // a decompressor's window
}

// fixedMemory is the process's memory before it reads a row: code, stacks, connections, the rest of the heap.
const fixedMemory = 48 << 20

// defaultMemory is the memory of a request that sets none.
const defaultMemory = 1 << 30

// DivideMemory returns the limit of each class. The remaining third is for garbage not yet collected.
func DivideMemory(memory int64) Shares {
	rows := max(memory-fixedMemory, memory/4) * 2 / 3
	return Shares{
		Lanes: rows * 6 / 10, ReadAhead: rows * 3 / 10, InFlight: rows / 10,
		Record: min(max(memory/8, 6<<20), reader.MaxRecordBytes),
		Pages:  max(memory/3, 16<<20),
		Window: max(memory/8, 8<<20),
	}
}

// MemoryForRows returns the memory of a process whose rows may take a number of bytes: the inverse of DivideMemory.
func MemoryForRows(bytes int64) int64 { return bytes*3/2 + fixedMemory }

// ReadingMemory returns the limits for readers of one input in a process with the given memory.
func ReadingMemory(memory int64) reader.Memory { return DivideMemory(memory).reading() }

// reading limits the readers of one input.
func (s Shares) reading() reader.Memory {
	return reader.Memory{RecordBytes: int(s.Record), PageBytes: s.Pages, WindowBytes: int(s.Window),
		BlockBytes: int(max(s.ReadAhead/4, 1))}
}

// PagesAhead limits the Parquet pages, in bytes, that a parser may hold before its split's turn.
func (s Shares) PagesAhead(parsers int) int64 { return s.ReadAhead / 2 / int64(parsers) }

// Sections limits the bytes of a schedule's sections.
func (s Shares) Sections() int { return int(min(maxSections, s.ReadAhead/8)) }

const maxSections = 16 << 20

// BlockLimit returns the maximum size of a lane's blocks in bytes: many fit in its share, half of the lanes' memory.
func (s Shares) BlockLimit(lanes int) int {
	return int(min(max(s.Lanes/16/int64(lanes), 16<<10), 1<<20))
}

// SplitLimit returns how many bytes of encoded rows one split may produce before it is handed over in parts. Splits are
// read ahead, prepared, parsed and kept in order; jobs in progress are those of the stages.
func (s Shares) SplitLimit(parsers int) int {
	return int(min(max(s.ReadAhead/int64(jobsAhead(parsers)), 64<<10), blockBytes))
}

// jobsAhead returns the number of splits or pieces between the file and the queues.
func jobsAhead(parsers int) int { return 2*QueueAhead*parsers + parsers + 2 }

// QueueAhead is the number of jobs per parser in each of the two channels between the reading stages.
const QueueAhead = 2

// MemoryLimit is the soft limit for the garbage collector that keeps the process within memory. The mapped binary takes
// most of the remaining memory; within the limit a small load can hold two of the largest rows.
func MemoryLimit(memory int64) int64 {
	return max(memory, min(memory, fixedMemory)+2*table.MaxRowBytes)
}
