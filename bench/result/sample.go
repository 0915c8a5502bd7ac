package result

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
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
	Run       int           `json:"run,omitempty"` // of the search for the highest rate: which step; 0 is the measurement itself
	Intended  time.Duration `json:"intended_ns"`   // when the batch was due; the same for all its attempts
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
	Failed      int              `json:"-"` // refused for good
	Codes       map[string]int64 `json:"-"` // of the rows that were not written; nil if all were
}

// header is the first line of a file of samples.
type header struct {
	Format   string   `json:"format"`
	Started  string   `json:"started"`
	WarmUp   float64  `json:"warm_up_seconds"`
	Settings Settings `json:"settings"`
}

// samplesFormat names the kind of file, and its version.
const samplesFormat = "tsimport bench samples 1"

// SampleWriter writes samples, a JSON object a line, below a line with the settings.
type SampleWriter struct {
	w   *bufio.Writer
	enc *json.Encoder
	err error
}

// NewSampleWriter begins a file of samples.
func NewSampleWriter(w io.Writer, started string, warmUp time.Duration, s Settings) *SampleWriter {
	b := bufio.NewWriterSize(w, 1<<16)
	sw := &SampleWriter{w: b, enc: json.NewEncoder(b)}
	sw.enc.SetEscapeHTML(false)
	sw.err = sw.enc.Encode(header{samplesFormat, started, warmUp.Seconds(), s})
	return sw
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

// ReadSamples makes the result of a file of samples again; of a search it is that of the last measurement.
func ReadSamples(r io.Reader) (*Result, error) {
	d := json.NewDecoder(r)
	var h header
	if err := d.Decode(&h); err != nil || h.Format != samplesFormat {
		return nil, fmt.Errorf("read samples: the first line is none of %q", samplesFormat)
	}
	if !(h.WarmUp >= 0 && h.WarmUp < longestTracked.Seconds()) {
		return nil, fmt.Errorf("read samples: a warm-up of %v s", h.WarmUp)
	}
	rec := NewRecorder(time.Duration(h.WarmUp * float64(time.Second)))
	end := time.Duration(0)
	slots := map[string]int{}
	for n := 2; ; n++ {
		var s Sample
		if err := d.Decode(&s); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read samples: line %d: %w", n, err)
		}
		if s.Run != 0 {
			continue
		}
		if s.Done < s.Sent || s.Sent < 0 || s.Done > math.MaxInt64/2 || s.Rows < s.Written || s.Written < 0 {
			return nil, fmt.Errorf("read samples: line %d: a request of %d rows, %d written, sent at %v and done at %v", n, s.Rows, s.Written, s.Sent, s.Done)
		}
		slot, known := slots[s.Partition]
		if !known {
			slot = rec.Slot(fmt.Sprintf("%08d", len(slots)), s.Partition) // in the order of their first requests
			slots[s.Partition] = slot
		}
		s.Slot, s.Last = slot, s.Rows == s.Written
		if s.Code != "" {
			s.Codes = map[string]int64{s.Code: int64(s.Rows - s.Written)}
		}
		rec.Add(&s)
		end = max(end, s.Done)
	}
	res := rec.Result(end)
	res.Settings, res.Started = h.Settings, h.Started
	return res, nil
}
