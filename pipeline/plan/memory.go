package plan

import (
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader"
)

// Shares divides the memory of the process into classes. Each class must be able to continue even if later classes have
// used up theirs: requests in flight, rows to be retried, the split whose turn it is, rows read back from disk, lanes,
// data read ahead. Rows in flight or to be retried count with their lanes, in blocks; InFlight is for their requests.
type Shares struct {
	Lanes     int64 // blocks that are queued, in flight, to be retried or read back
	ReadAhead int64 // splits and blocks before the queues
	InFlight  int64 // bodies of requests

	// Limits of the split whose turn it is. Anything larger is refused, with the --memory that it needs.
	Record int64 // text of one record
	Pages  int64 // pages and dictionaries of Parquet
	Window int64 // a decompressor's window
}

// fixedMemory is the process's memory before it reads a row, for code, stacks, connections and the rest of the heap.
const fixedMemory = 48 << 20

// defaultMemory is the memory for a request that does not set it.
const defaultMemory = 1 << 30

// DivideMemory returns the limit of each class. The remaining third is for garbage that is not collected yet.
func DivideMemory(memory int64) Shares {
	rows := max(memory-fixedMemory, memory/4) * 2 / 3
	return Shares{
		Lanes: rows * 6 / 10, ReadAhead: rows * 3 / 10, InFlight: rows / 10,
		Record: min(max(memory/8, 6<<20), reader.MaxRecordBytes),
		Pages:  max(memory/3, 16<<20),
		Window: max(memory/8, 8<<20),
	}
}

// MemoryForRows returns the memory that a process needs for rows of the given bytes. It is the inverse of DivideMemory.
func MemoryForRows(bytes int64) int64 { return bytes*3/2 + fixedMemory }

// ReadingMemory returns the limits for the readers of one input in a process with the given memory.
func ReadingMemory(memory int64) reader.Memory { return DivideMemory(memory).reading() }

func (s Shares) reading() reader.Memory {
	return reader.Memory{RecordBytes: int(s.Record), PageBytes: s.Pages, WindowBytes: int(s.Window),
		BlockBytes: int(max(s.ReadAhead/4, 1))}
}

// PagesAhead returns the maximum bytes of Parquet pages that a parser may hold before its split's turn.
func (s Shares) PagesAhead(parsers int) int64 { return s.ReadAhead / 2 / int64(parsers) }

// Sections returns the maximum bytes of a schedule's sections.
func (s Shares) Sections() int { return int(min(maxSections, s.ReadAhead/8)) }

const maxSections = 16 << 20

// BlockLimit returns the maximum bytes of a lane's block: many fit in the lane's share of half of the lanes' memory.
func (s Shares) BlockLimit(lanes int) int {
	return int(min(max(s.Lanes/16/int64(lanes), 16<<10), 1<<20))
}

// SplitLimit returns how many bytes of encoded rows a split may have before it is handed over in parts.
func (s Shares) SplitLimit(parsers int) int {
	return int(min(max(s.ReadAhead/int64(jobsAhead(parsers)), 64<<10), blockBytes))
}

// jobsAhead returns the number of splits or pieces between the file and the queues.
func jobsAhead(parsers int) int { return 2*QueueAhead*parsers + parsers + 2 }

// QueueAhead is the number of jobs per parser in each of the two channels between the reading stages.
const QueueAhead = 2

// MemoryLimit returns the collector's soft limit: memory, or more if the process and two of the largest rows need it.
func MemoryLimit(memory int64) int64 {
	return max(memory, min(memory, fixedMemory)+2*table.MaxRowBytes)
}
