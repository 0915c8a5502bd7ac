package result

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Outcomes of a request.
const (
	OK          = "ok"          // all rows written
	Partly      = "partly"      // some of them
	Throttled   = "throttled"   // none, for want of capacity
	Unavailable = "unavailable" // none: the partition did not serve
	Failed      = "failed"      // none, for another reason
)

// Sample is one request. Times count from the start of the run.
type Sample struct {
	Intended  time.Duration `json:"intended_ns"` // when the batch was due; the same for all its attempts
	Sent      time.Duration `json:"sent_ns"`
	Done      time.Duration `json:"done_ns"`
	Attempt   int           `json:"attempt"` // 1 is the first
	Rows      int           `json:"rows"`
	Written   int           `json:"written"`
	Throttled int           `json:"throttled,omitempty"`
	Units     int64         `json:"write_cu"`
	Bytes     int64         `json:"bytes"` // of the rows written
	Outcome   string        `json:"outcome"`
	Code      string        `json:"code,omitempty"` // of a row that was not written
	Partition string        `json:"partition"`      // its first key value, "" for the first or only one
	WarmUp    bool          `json:"warm_up,omitempty"`

	Slot        int              `json:"-"` // of the partition, as Recorder.Slot gave it
	Last        bool             `json:"-"` // the batch is done with it
	Unavailable int              `json:"-"`
	Failed      int              `json:"-"` // rejected
	Codes       map[string]int64 `json:"-"` // of the rows that were not written; nil if all were
}

// Header is the line in front of the samples of one run.
type Header struct {
	Format   string   `json:"format"` // samplesFormat
	Started  string   `json:"started"`
	WarmUp   float64  `json:"warm_up_seconds"`
	Settings Settings `json:"settings"`
}

// samplesFormat names the kind of file, and its version.
const samplesFormat = "tsimport bench samples 1"

// SampleWriter writes samples, a JSON object a line, those of each run below a line with its settings.
type SampleWriter struct {
	w   *bufio.Writer
	enc *json.Encoder
	err error
}

// NewSampleWriter begins a file of samples.
func NewSampleWriter(w io.Writer) *SampleWriter {
	b := bufio.NewWriterSize(w, 1<<16)
	sw := &SampleWriter{w: b, enc: json.NewEncoder(b)}
	sw.enc.SetEscapeHTML(false)
	return sw
}

// Begin begins a run; an error is kept for Flush.
func (w *SampleWriter) Begin(h Header) {
	h.Format = samplesFormat
	if w.err == nil {
		w.err = w.enc.Encode(h)
	}
}

// Write writes a sample; an error is kept for Flush.
func (w *SampleWriter) Write(s *Sample) {
	if w.err == nil {
		w.err = w.enc.Encode(s)
	}
}

// Flush writes what is held back and returns the first error.
func (w *SampleWriter) Flush() error {
	if w.err == nil {
		w.err = w.w.Flush()
	}
	if w.err != nil {
		return fmt.Errorf("write samples: %w", w.err)
	}
	return nil
}

// sampleReader makes a run of samples a result again.
type sampleReader struct {
	header Header
	rec    *Recorder
	end    time.Duration
	slots  map[string]int
}

// ReadSamples makes the result of a file of samples again. Of several runs, the steps of a search, it is the last one's.
func ReadSamples(r io.Reader) (*Result, error) {
	d := json.NewDecoder(r)
	var run *sampleReader
	for n := 1; ; n++ {
		var line struct {
			Header
			Sample
		}
		err := d.Decode(&line)
		switch {
		case err == io.EOF && run != nil:
			return run.result(), nil
		case err == nil && line.Format != "":
			run, err = newSampleReader(line.Header)
		case err == nil && run == nil || err == io.EOF:
			err = fmt.Errorf("there is no line with the format %q in front", samplesFormat)
		case err == nil:
			err = run.add(&line.Sample)
		}
		if err != nil {
			return nil, fmt.Errorf("read samples: line %d: %w", n, err)
		}
	}
}

func newSampleReader(h Header) (*sampleReader, error) {
	if h.Format != samplesFormat {
		return nil, fmt.Errorf("format %q: want %q", h.Format, samplesFormat)
	}
	if !(h.WarmUp >= 0 && h.WarmUp < longestTracked.Seconds()) {
		return nil, fmt.Errorf("a warm-up of %v s: want none or a time below an hour", h.WarmUp)
	}
	warmUp := time.Duration(h.WarmUp * float64(time.Second))
	return &sampleReader{header: h, rec: NewRecorder(warmUp), slots: map[string]int{}}, nil
}

// longestRun is what no time in a sample exceeds.
const longestRun = 1000 * time.Hour

func (r *sampleReader) add(s *Sample) error {
	if s.Intended < 0 || s.Sent < s.Intended || s.Done < s.Sent || s.Done > longestRun || s.Written < 0 || s.Throttled < 0 || s.Rows < s.Written+s.Throttled {
		return fmt.Errorf("a request of %d rows, %d written, %d throttled, due at %v, sent at %v, done at %v: that cannot be", s.Rows, s.Written, s.Throttled, s.Intended, s.Sent, s.Done)
	}
	slot, known := r.slots[s.Partition]
	if !known {
		slot = r.rec.Slot(fmt.Sprintf("%08d", len(r.slots)), s.Partition) // in the order of their first requests
		r.slots[s.Partition] = slot
	}
	s.Slot, s.Last = slot, s.Rows == s.Written
	if s.Code != "" {
		s.Codes = map[string]int64{s.Code: int64(s.Rows - s.Written)}
	}
	r.rec.Add(s)
	r.end = max(r.end, s.Done)
	return nil
}

func (r *sampleReader) result() *Result {
	res := r.rec.Result(r.end)
	res.Settings, res.Started = r.header.Settings, r.header.Started
	return res
}
