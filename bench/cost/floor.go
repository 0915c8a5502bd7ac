package cost

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/tsimport/bench"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/encode"
)

// Floor is what no client can do without, in microseconds of CPU a row: each stage alone, in one goroutine, from memory.
type Floor struct {
	CSV    float64 `json:"encoding_csv_us"` // encoding/csv, its record used again
	Encode float64 `json:"encode_us"`       // typed values to PlainBuffer bytes
	MD5    float64 `json:"md5_us"`          // of the bodies of full requests
	File   float64 `json:"file_csv_us"`     // of inputs that are only read: all of the file in pieces, and encoding/csv; else 0
	Sum    float64 `json:"sum_us"`          // of what is measured
	// Busy is the sum while every processor does the same: what processors share makes each of them slower, and a load keeps all of them
	// busy. 0 where there is one, or where the system does not say what a thread has used.
	Busy float64 `json:"busy_sum_us,omitempty"`

	AnswerMD5 float64 `json:"answer_md5_us"` // of pages of rows
	Decode    float64 `json:"decode_us"`     // PlainBuffer bytes to values, with their checksums

	WireBytes float64 `json:"wire_bytes_per_row"` // of the bodies
	CSVBytes  float64 `json:"csv_bytes_per_row"`

	AnswerBytes float64 `json:"answer_bytes_per_row"`

	stage time.Duration        // how long each stage is repeated
	used  func() time.Duration // CPU time
}

// floorRows is how many rows of the input the floor is measured with: enough to leave the caches.
const floorRows = 20_000

func measureFloor(file string, shape bench.Shape, rows uint64, what string) (f Floor, err error) {
	s, err := gather(file, shape, rows)
	stage := min(time.Duration(rows)*time.Microsecond, 300*time.Millisecond) // a load of few rows is no more exact than that
	if err == nil {
		f, err = s.measure(what, stage, cpuTime)
	}
	if err == nil && threadTime() > 0 {
		f.Busy, err = s.measureBusy(what, stage, runtime.GOMAXPROCS(0))
	}
	if err != nil {
		return f, fmt.Errorf("measure floor: %w", err)
	}
	return f, nil
}

// measure runs the stages one after another.
func (s *samples) measure(what string, stage time.Duration, used func() time.Duration) (f Floor, err error) {
	rows := float64(len(s.rows))
	f = Floor{stage: stage, used: used, CSVBytes: float64(len(s.text)) / rows, WireBytes: bytesOf(s.bodies) / rows, AnswerBytes: bytesOf(s.pages) / float64(s.stored)}
	f.CSV = f.repeat(len(s.rows), s.readCSV)
	e, block := encode.New(s.schema, table.Put, false), new(table.Block)
	f.Encode = f.repeat(len(s.rows), func() { s.encode(e, block) })
	f.MD5 = f.repeat(len(s.rows), func() { hash(s.bodies) })
	f.AnswerMD5 = f.repeat(s.stored, func() { hash(s.pages) })
	f.Decode = f.repeat(s.stored, func() {
		if e := s.decode(); e != nil {
			err = e
		}
	})
	if err == nil && (what == Counting || what == Checking) {
		err = fileStage(s.file, &f)
	}
	f.Sum = f.sum(what)
	return f, err
}

// measureBusy returns the mean sum of stages that so many threads run at the same time; 0 of one.
func (s *samples) measureBusy(what string, stage time.Duration, threads int) (sum float64, err error) {
	if threads < 2 {
		return 0, nil
	}
	floors := make([]Floor, threads)
	var all errgroup.Group
	for i := range floors {
		all.Go(func() (err error) {
			runtime.LockOSThread() // it ends with the goroutine
			floors[i], err = s.measure(what, stage, threadTime)
			return err
		})
	}
	err = all.Wait()
	for _, f := range floors {
		sum += f.Sum / float64(threads)
	}
	return sum, err
}

// repeat runs a stage over n rows until it has taken enough of the processor and returns microseconds of CPU a row.
func (f *Floor) repeat(n int, stage func()) float64 {
	stage() // warm
	begun, used, rows := f.used(), time.Duration(0), 0
	for used < max(f.stage, time.Millisecond) { // some kernels count processor time in ticks, and none while another process has the processor
		stage()
		rows += n
		used = f.used() - begun
	}
	return float64(used.Nanoseconds()) / 1e3 / float64(rows)
}

// filePiece is how much of a file is read at a time: larger pieces are not cheaper.
const filePiece = 64 << 10

// fileStage reads the file from its beginning to its end and finds the fields of its records. The pages are in the kernel's cache.
func fileStage(name string, f *Floor) error {
	in, err := os.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	read := func() (records int, err error) {
		if _, err := in.Seek(0, io.SeekStart); err != nil {
			return 0, err
		}
		r := csv.NewReader(bufio.NewReaderSize(in, filePiece))
		r.ReuseRecord = true
		for {
			if _, err := r.Read(); err == io.EOF {
				return records - 1, nil // the header
			} else if err != nil {
				return 0, err
			}
			records++
		}
	}
	n, err := read()
	if err == nil {
		f.File = f.repeat(n, func() { _, err = read() })
	}
	return err
}
