package writer

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// Doubt is a row that may have been written more than once. At the end of the load, all copies but one are deleted.
type Doubt struct {
	Ordering []byte // the ordering key
	Row      []byte // PlainBuffer bytes of its key, with a placeholder
	Mark     string
	Number   int64 // the number recorded for the row
	From     int64 // a lower bound of the copies' numbers
}

func (n *AutoIncrement) Doubt(r table.Ref, o table.Outcome) (Doubt, error) {
	d := Doubt{Ordering: r.Key(), Mark: string(n.Marker.Append(nil, r)), Number: o.Number, From: o.From}
	decoded, err := plainbuffer.Decode(r.Body())
	if err != nil {
		return d, err
	}
	var row plainbuffer.Row
	row.Begin(nil)
	for i, c := range decoded.Key {
		name := plainbuffer.NewName(c.Name)
		if i == n.Column {
			row.KeyAutoIncrement(&name)
			continue
		}
		row.Key(&name, c.Value)
	}
	d.Row = row.End()
	return d, nil
}

// Append appends the encoded doubt, as ReadDoubt reads it.
func (d *Doubt) Append(dst []byte) []byte {
	for _, b := range [][]byte{d.Ordering, d.Row, []byte(d.Mark)} {
		dst = binary.AppendUvarint(dst, uint64(len(b)))
		dst = append(dst, b...)
	}
	return binary.AppendVarint(binary.AppendVarint(dst, d.Number), d.From)
}

// maxDoubtBytes limits each part of a doubt. Four key columns with their names and framing take less.
const maxDoubtBytes = 1 << 16

// ReadDoubt reads a doubt. It returns io.EOF after the last one.
func ReadDoubt(r *bufio.Reader) (d Doubt, err error) {
	var parts [3][]byte
	for i := range parts {
		size, err := binary.ReadUvarint(r)
		if i == 0 && err == io.EOF {
			return d, err
		}
		if err == nil && size > maxDoubtBytes {
			err = errors.New("it is damaged")
		}
		if err == nil {
			parts[i] = make([]byte, size)
			_, err = io.ReadFull(r, parts[i])
		}
		if err != nil {
			return d, fmt.Errorf("read row that was sent more than once: %w", whole(err))
		}
	}
	d.Ordering, d.Row, d.Mark = parts[0], parts[1], string(parts[2])
	if d.Number, err = binary.ReadVarint(r); err == nil {
		d.From, err = binary.ReadVarint(r)
	}
	if err != nil {
		return d, fmt.Errorf("read row that was sent more than once: %w", whole(err))
	}
	return d, nil
}

func whole(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Sweep looks for copies of a key's rows and deletes all except the one with the recorded number, or the lowest if that
// one is gone. It keeps rows of other runs. It returns the number of deleted rows, and may be repeated after an error.
func (n *AutoIncrement) Sweep(doubts []Doubt) (deleted int, err error) {
	if len(doubts) == 0 {
		return 0, nil
	}
	key, err := plainbuffer.Decode(doubts[0].Row)
	if err != nil {
		return 0, err
	}
	from := doubts[0].From
	for _, d := range doubts {
		from = min(from, d.From)
	}
	recorded, copies := recordedOf(doubts), map[string][]marked{}
	err = n.search(key.Key, from, int32(min(8*firstPage*len(doubts), maxPage)), func(m marked) (more bool) {
		if _, ours := recorded[m.mark]; ours {
			copies[m.mark] = append(copies[m.mark], m)
		}
		return !n.older(m)
	})
	if err != nil {
		return 0, err
	}
	return n.deleteSurplus(recorded, copies)
}

// SweepTable is Sweep for many keys, by reading the whole table. If that takes too many requests, done is false.
func (n *AutoIncrement) SweepTable(doubts []Doubt) (deleted int, done bool, err error) {
	var bounds []table.Value
	var names []string
	for i, d := range doubts {
		key, err := plainbuffer.Decode(d.Row)
		if err != nil {
			return 0, false, err
		}
		bounds = append(bounds, key.Key[0].Value)
		if i == 0 {
			names = namesOf(key.Key)
		}
	}
	recorded, copies := recordedOf(doubts), map[string][]marked{}
	var mu sync.Mutex
	if !n.readAll(names, divide(bounds, int64(len(doubts))), int64(len(doubts)), func(m marked) (more bool) {
		if _, ours := recorded[m.mark]; ours {
			mu.Lock()
			copies[m.mark] = append(copies[m.mark], m)
			mu.Unlock()
		}
		return true
	}) {
		return 0, false, nil
	}
	deleted, err = n.deleteSurplus(recorded, copies)
	return deleted, err == nil, err
}

func recordedOf(doubts []Doubt) map[string]int64 {
	recorded := make(map[string]int64, len(doubts))
	for _, d := range doubts {
		recorded[d.Mark] = d.Number // the last number counts if a row was replayed
	}
	return recorded
}

func (n *AutoIncrement) deleteSurplus(recorded map[string]int64, copies map[string][]marked) (deleted int, err error) {
	for mark, of := range copies {
		stays := of[0].number
		for _, m := range of {
			stays = min(stays, m.number)
		}
		for _, m := range of {
			if m.number == recorded[mark] {
				stays = m.number
			}
		}
		for _, m := range of {
			if m.number == stays {
				continue
			}
			if err := client.Needed("DeleteRow", n.Table, n.deleteOnce(m.key)); err != nil {
				return deleted, err
			}
			deleted++
		}
	}
	return deleted, nil
}

// deleteOnce deletes a row. It is not an error if the row is missing: an earlier try may have deleted it.
func (n *AutoIncrement) deleteOnce(k *tablestore.PrimaryKey) (err error) {
	defer unreadable(&err)
	// The service requires this condition for a key with a number.
	_, err = n.searcher.DeleteRow(&tablestore.DeleteRowRequest{DeleteRowChange: &tablestore.DeleteRowChange{
		TableName: n.Table, PrimaryKey: k,
		Condition: &tablestore.RowCondition{RowExistenceExpectation: tablestore.RowExistenceExpectation_EXPECT_EXIST},
	}})
	if ots, ok := errors.AsType[*tablestore.OtsError](err); ok && ots.Code == "OTSConditionCheckFail" {
		return nil
	}
	return err
}

// SweepAgain reports whether a failed sweep may succeed if repeated.
func SweepAgain(err error) bool {
	return client.Classify(err).Passes()
}
