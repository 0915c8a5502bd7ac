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
	Partly      = "partly"      // some rows written
	Throttled   = "throttled"   // no rows, for lack of capacity
	Unavailable = "unavailable" // no rows: the partition was unavailable
	Failed      = "failed"      // no rows, for another reason
)

// Sample is one request. Times are relative to the start of the run.
type Sample struct {
	Intended  time.Duration `json:"intended_ns"` // due time of the batch, the same for all its attempts
	Sent      time.Duration `json:"sent_ns"`
	Done      time.Duration `json:"done_ns"`
	Attempt   int           `json:"attempt"` // from 1
	Rows      int           `json:"rows"`
	Written   int           `json:"written"`
	Throttled int           `json:"throttled,omitempty"`
	Units     int64         `json:"write_cu"`
	Bytes     int64         `json:"bytes"` // of the rows written
	Outcome   string        `json:"outcome"`
	Code      string        `json:"code,omitempty"` // code of a row that was not written
	Partition string        `json:"partition"`      // its first key value; "" for the first partition
	WarmUp    bool          `json:"warm_up,omitempty"`

	Slot        int              `json:"-"` // partition, by Recorder.Slot
	Last        bool             `json:"-"` // the batch is finished
	Unavailable int              `json:"-"`
	Failed      int              `json:"-"` // rejected
	Codes       map[string]int64 `json:"-"` // number of rows that were not written, by code; nil if all were
}

// Header is the first line of a run's samples.
type Header struct {
	Format   string   `json:"format"` // samplesFormat
	Started  string   `json:"started"`
	WarmUp   float64  `json:"warm_up_seconds"`
	Settings Settings `json:"settings"`
}

// samplesFormat names the file format and its version.
const samplesFormat = "tsimport bench samples 1"

// SampleWriter writes samples as JSON lines, after a line with their run's settings. Flush returns the first error.
type SampleWriter struct {
	w   *bufio.Writer
	enc *json.Encoder
}

func NewSampleWriter(w io.Writer) *SampleWriter {
	b := bufio.NewWriterSize(w, 1<<16)
	sw := &SampleWriter{w: b, enc: json.NewEncoder(b)}
	sw.enc.SetEscapeHTML(false)
	return sw
}

func (w *SampleWriter) Begin(h Header) {
	h.Format = samplesFormat
	_ = w.enc.Encode(h)
}

func (w *SampleWriter) Write(s *Sample) { _ = w.enc.Encode(s) }

// Flush writes buffered samples and returns the first error.
func (w *SampleWriter) Flush() error {
	if err := w.w.Flush(); err != nil {
		return fmt.Errorf("write samples: %w", err)
	}
	return nil
}
