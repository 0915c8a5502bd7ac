package cost

import (
	"bufio"
	"bytes"
	"crypto/md5"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"tsimport/bench"
	"tsimport/internal/table"
	"tsimport/internal/tablestore/encode"
	"tsimport/writer"
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

// stageTime is how long a stage is repeated beside loads of as many rows: a load of few is no more exact than that.
func stageTime(rows uint64) time.Duration {
	return min(time.Duration(rows)*time.Microsecond, 300*time.Millisecond)
}

func measureFloor(file string, shape bench.Shape, what string, stage time.Duration) (f Floor, err error) {
	if f, err = measureStages(file, shape, what, stage, cpuTime); err == nil && threadTime() > 0 {
		f.Busy, err = measureBusy(file, shape, what, stage, runtime.GOMAXPROCS(0))
	}
	return f, err
}

// measureBusy returns the mean sum of stages that so many threads run at the same time; 0 of one.
func measureBusy(file string, shape bench.Shape, what string, stage time.Duration, threads int) (sum float64, err error) {
	if threads < 2 {
		return 0, nil
	}
	floors := make([]Floor, threads)
	var all errgroup.Group
	for i := range floors {
		all.Go(func() (err error) {
			runtime.LockOSThread() // it ends with the goroutine
			floors[i], err = measureStages(file, shape, what, stage, threadTime)
			return err
		})
	}
	err = all.Wait()
	for _, f := range floors {
		sum += f.Sum / float64(threads)
	}
	return sum, err
}

func measureStages(file string, shape bench.Shape, what string, stage time.Duration, used func() time.Duration) (f Floor, err error) {
	f.stage, f.used = stage, used
	text, err := head(file)
	if err != nil {
		return f, err
	}
	records, err := csvStage(text, &f)
	if err != nil {
		return f, err
	}
	block, err := encodeStage(records, shape, &f)
	if err != nil {
		return f, err
	}
	md5Stage(block, &f)
	if err := readStages(shape, &f); err != nil {
		return f, err
	}
	if what == Counting || what == Checking {
		if err := fileStage(file, &f); err != nil {
			return f, err
		}
	}
	f.Sum = f.sum(what)
	return f, nil
}

// head reads the header and about floorRows records.
func head(file string) ([]byte, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("measure floor: %w", err)
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, 32<<20))
	if err != nil {
		return nil, fmt.Errorf("measure floor: %w", err)
	}
	lines := 0
	for i, c := range text {
		if c == '\n' {
			if lines++; lines == floorRows+1 {
				return text[:i+1], nil
			}
		}
	}
	return text[:bytes.LastIndexByte(text, '\n')+1], nil // the last record may be cut
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

// byteReader reads from memory without the pleasures of an io.WriterTo.
type byteReader struct{ rest []byte }

func (b *byteReader) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

func csvStage(text []byte, f *Floor) (records [][]string, err error) {
	r := csv.NewReader(&byteReader{text})
	if records, err = r.ReadAll(); err != nil || len(records) < 2 {
		return nil, fmt.Errorf("measure floor: read input: %w", errors.Join(err, errors.New("it has no record")))
	}
	n := len(records) - 1
	f.CSVBytes = float64(len(text)) / float64(n)
	f.CSV = f.repeat(n, func() {
		r := csv.NewReader(&byteReader{text})
		r.ReuseRecord = true
		for {
			if _, err := r.Read(); err != nil {
				return
			}
		}
	})
	return records[1:], nil
}

// filePiece is how much of a file is read at a time: larger pieces are not cheaper.
const filePiece = 64 << 10

// fileStage reads the file from its beginning to its end and finds the fields of its records. The pages are in the kernel's cache.
func fileStage(name string, f *Floor) error {
	in, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("measure floor: %w", err)
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
	if err != nil {
		return fmt.Errorf("measure floor: %w", err)
	}
	return nil
}

func encodeStage(records [][]string, shape bench.Shape, f *Floor) (*table.Block, error) {
	rows := make([][]table.Value, len(records))
	for i, r := range records {
		for n, c := range shape.Columns {
			v, err := valueOf(c.Kind, r[n])
			if err != nil {
				return nil, fmt.Errorf("measure floor: %w", err)
			}
			rows[i] = append(rows[i], v)
		}
	}
	e := encode.New(SchemaOf(shape), table.Put, false)
	block := new(table.Block)
	f.Encode = f.repeat(len(rows), func() {
		block.Reset()
		for _, values := range rows {
			e.Append(block, values, nil, table.Span{}, nil)
		}
	})
	return block, nil
}

// SchemaOf is the table schema of a shape.
func SchemaOf(shape bench.Shape) *table.Schema {
	s := &table.Schema{Table: "t"}
	for i, c := range shape.Columns {
		t := [...]table.Type{table.Integer, table.Double, table.String, table.String}[c.Kind]
		if i == 0 {
			s.Key = append(s.Key, table.KeyColumn{Name: c.Name, Type: t})
		}
		s.Columns = append(s.Columns, table.Column{Source: c.Name, Name: c.Name, Type: t})
	}
	return s
}

func valueOf(kind bench.Kind, text string) (v table.Value, err error) {
	switch kind {
	case bench.IntegerValues:
		v.Type = table.Integer
		v.Int, err = strconv.ParseInt(text, 10, 64)
	case bench.DoubleValues:
		v.Type = table.Double
		v.Double, err = strconv.ParseFloat(text, 64)
	case bench.NoValues:
	default:
		v = table.Value{Type: table.String, Bytes: []byte(text)}
	}
	return v, err
}

// md5Stage hashes bodies of full requests, as large as the rows make them.
func md5Stage(block *table.Block, f *Floor) {
	var bodies [][]byte
	var refs []table.Ref
	total, rows := 0, 0
	for i := range block.Rows {
		refs = append(refs, table.Ref{Block: block, Index: int32(i)})
		if len(refs) == table.MaxBatchRows || i == len(block.Rows)-1 {
			body := writer.AppendRequest(nil, "t", table.Put, table.Ignore, refs)
			bodies = append(bodies, body)
			total, rows = total+len(body), rows+len(refs)
			refs = refs[:0]
		}
	}
	f.WireBytes = float64(total) / float64(rows)
	f.MD5 = f.repeat(rows, func() {
		for _, b := range bodies {
			md5.Sum(b)
		}
	})
}
