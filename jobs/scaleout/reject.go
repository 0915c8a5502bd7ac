package scaleout

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"

	"example.com/tsimport/internal/extsort"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/spill"
	"example.com/tsimport/internal/table"
)

// keptReject is a rejected record. A record that was rejected when written has no text. finish rereads that.
type keptReject struct {
	Source int          `json:"source"` // ordinal of its source
	Record int64        `json:"record"` // number of the record, from 0
	Header int          `json:"header"`
	Read   bool         `json:"read,omitempty"` // Reject is complete
	Row    int64        `json:"row,omitempty"`  // if rejected on writing, its number in the shard's reduced run, from 0
	Reject table.Reject `json:"reject"`
}

// keptList is an object with rejected records, one per line, in any order.
type keptList struct {
	Object  string `json:"object"`
	Bytes   int64  `json:"bytes"`
	Sum     uint32 `json:"sum"` // CRC-32C
	Records int64  `json:"records"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// listBytes is the size at which a list is written, so that rejected records do not fill the memory.
const listBytes = 4 << 20

// rejectLists writes rejects to objects name, name.2, name.3, …. The name must be unique to the attempt.
type rejectLists struct {
	store   jobdir.Store
	name    string
	text    bytes.Buffer
	records int64 // records in text
	lists   []keptList
	n       int64
	seams   int64
}

func (l *rejectLists) add(ctx context.Context, r *keptReject) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("store rejected row: %w", err)
	}
	l.text.Write(line)
	l.text.WriteByte('\n')
	l.records++
	l.n++
	if r.Reject.Reason.Code == table.CodeSeam {
		l.seams++
	}
	if l.text.Len() < listBytes {
		return nil
	}
	return l.put(ctx)
}

func (l *rejectLists) put(ctx context.Context) error {
	name := l.name
	if n := len(l.lists); n > 0 {
		name = fmt.Sprintf("%s.%d", l.name, n+1)
	}
	body := l.text.Bytes()
	if err := l.store.PutAbsent(ctx, name, body); err != nil {
		return fmt.Errorf("store rejected rows in %s: %w", l.store, err)
	}
	l.lists = append(l.lists, keptList{Object: name, Bytes: int64(len(body)), Sum: crc32.Checksum(body, castagnoli),
		Records: l.records})
	l.text.Reset()
	l.records = 0
	return nil
}

// close writes the remaining rejects, and adds the lists to a result.
func (l *rejectLists) close(ctx context.Context, to *done) error {
	if l.records > 0 {
		if err := l.put(ctx); err != nil {
			return err
		}
	}
	to.Rejects, to.Rejected, to.Seams = l.lists, l.n, l.seams
	return nil
}

// eachReject calls each with the rejected records of a result, and the stored line of each.
func (j *Job) eachReject(ctx context.Context, d *done, each func(r *keptReject, line []byte) error) error {
	var all int64
	for _, l := range d.Rejects {
		body, err := j.store.Get(ctx, l.Object)
		if err == nil && (int64(len(body)) != l.Bytes || crc32.Checksum(body, castagnoli) != l.Sum) {
			err = progress.Unfitf("it is damaged")
		}
		if err != nil {
			return fmt.Errorf("read %s of %s: %w", l.Object, j.store, err)
		}
		all += l.Records
		n := int64(0)
		for line := range bytes.Lines(body) {
			r := new(keptReject)
			if err := json.Unmarshal(line, r); err != nil {
				return fmt.Errorf("read %s of %s: %w", l.Object, j.store, err)
			}
			if err := each(r, line); err != nil {
				return err
			}
			n++
		}
		if n != l.Records {
			return progress.Unfitf("%s of %s has %d records, want %d", l.Object, j.store, n, l.Records)
		}
	}
	if all != d.Rejected {
		return progress.Unfitf("%s is damaged: attempt %s has %d rejects but keeps %d", j.store, d.Attempt, d.Rejected, all)
	}
	return nil
}

// sorter returns a sorter with its part of the process's memory.
func (j *Job) sorter() (*extsort.Sorter, error) {
	limits := &j.o.Load.Limits
	return extsort.New(extsort.Options{Memory: max(limits.Memory/4, 1<<20), Spill: spill.Options{Dir: limits.TempDir}})
}

// sortedRejects iterates over the rejected records of a job in input order, with one in memory at a time.
type sortedRejects struct {
	it   *extsort.Iterator
	next *keptReject // nil at the end
}

func newSortedRejects(sorted *extsort.Sorted) (*sortedRejects, error) {
	s := &sortedRejects{it: sorted.Range(nil, nil)}
	return s, s.advance()
}

func (s *sortedRejects) advance() error {
	if s.next = nil; !s.it.Next() {
		return s.it.Err()
	}
	s.next = new(keptReject)
	return json.Unmarshal(s.it.Value(), s.next)
}

// before reports whether the next reject precedes a record of a source.
func (s *sortedRejects) before(source int, record int64) bool {
	return s.next != nil && (s.next.Source < source || s.next.Source == source && s.next.Record < record)
}

// end returns the number of the first record after the part.
func (p Part) end() int64 {
	if p.Records < 0 {
		return math.MaxInt64
	}
	return p.Record + p.Records
}
