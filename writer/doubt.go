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

// Doubt is a row that was, or may have been, sent more than once: the end of the load checks that there is one copy.
type Doubt struct {
	Ordering []byte // key
	Row      []byte // PlainBuffer bytes of its key, with a placeholder
	Mark     string
	Number   int64 // the recorded number
	From     int64 // no copy has a lower number
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

// Append appends the doubt as it is stored in a file.
func (d *Doubt) Append(dst []byte) []byte {
	for _, b := range [][]byte{d.Ordering, d.Row, []byte(d.Mark)} {
		dst = binary.AppendUvarint(dst, uint64(len(b)))
		dst = append(dst, b...)
	}
	return binary.AppendVarint(binary.AppendVarint(dst, d.Number), d.From)
}

// maxDoubtBytes limits each part of a doubt: four key columns with their names and framing.
const maxDoubtBytes = 1 << 16

// ReadDoubt reads one doubt, or io.EOF after the last.
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

// Sweep looks for a key's rows that were sent more than once and deletes all copies but the recorded or lowest number.
// Rows of other runs are kept. It returns the number deleted; it may be repeated after an error.
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

// SweepTable is Sweep for many keys, by reading the whole table. It gives up (done is false) if that takes longer.
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

// recordedOf returns the recorded number for each mark.
func recordedOf(doubts []Doubt) map[string]int64 {
	recorded := make(map[string]int64, len(doubts))
	for _, d := range doubts {
		recorded[d.Mark] = d.Number // the last number, if a row was replayed
	}
	return recorded
}

// deleteSurplus deletes all copies of a row except the recorded or lowest one.
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

// deleteOnce deletes a row. A missing one is not an error: an earlier try may have deleted it.
func (n *AutoIncrement) deleteOnce(k *tablestore.PrimaryKey) (err error) {
	defer unreadable(&err)
	// The service requires that a row whose key has a number exists.
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
