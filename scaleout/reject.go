package scaleout

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"

	"tsimport/internal/table"
)

// keptReject is a rejected record. One that was rejected as it was written has no text: Finish reads it again.
type keptReject struct {
	Source int          `json:"source"` // its ordinal
	Record int64        `json:"record"` // records of the source before it
	Header int          `json:"header"`
	Read   bool         `json:"read,omitempty"` // Reject is whole
	Row    int64        `json:"row,omitempty"`  // of one that was rejected as it was written: rows of the shard's reduced run before it
	Reject table.Reject `json:"reject"`
}

// keptList is an object with rejected records, a line each, in the order of the inputs.
type keptList struct {
	Object  string `json:"object"`
	Bytes   int64  `json:"bytes"`
	Sum     uint32 `json:"sum"` // CRC-32C
	Records int64  `json:"records"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// rejectList collects rejected records.
type rejectList struct {
	text bytes.Buffer
	n    int64
}

func (l *rejectList) add(r *keptReject) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("keep rejected row: %w", err)
	}
	l.text.Write(line)
	l.text.WriteByte('\n')
	l.n++
	return nil
}

// keep puts the list, if there is something in it.
func (l *rejectList) keep(ctx context.Context, j *Job, name string) (*keptList, error) {
	if l.n == 0 {
		return nil, nil
	}
	body := l.text.Bytes()
	if err := j.store.PutAbsent(ctx, name, body); err != nil {
		return nil, fmt.Errorf("keep rejected rows in %s: %w", j.store, err)
	}
	return &keptList{Object: name, Bytes: int64(len(body)), Sum: crc32.Checksum(body, castagnoli), Records: l.n}, nil
}

// readRejects reads a list.
func (j *Job) readRejects(ctx context.Context, l *keptList) (all []*keptReject, err error) {
	if l == nil {
		return nil, nil
	}
	body, err := j.store.Get(ctx, l.Object)
	if err == nil && (int64(len(body)) != l.Bytes || crc32.Checksum(body, castagnoli) != l.Sum) {
		err = unfitf("it is damaged")
	}
	if err != nil {
		return nil, fmt.Errorf("read %s of %s: %w", l.Object, j.store, err)
	}
	for d := json.NewDecoder(bytes.NewReader(body)); d.More(); {
		r := new(keptReject)
		if err := d.Decode(r); err != nil {
			return nil, fmt.Errorf("read %s of %s: %w", l.Object, j.store, err)
		}
		all = append(all, r)
	}
	if int64(len(all)) != l.Records {
		return nil, unfitf("%s of %s has %d records, want %d", l.Object, j.store, len(all), l.Records)
	}
	return all, nil
}
