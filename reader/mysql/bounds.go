package mysql

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/sqltable"
)

// Bounds uses the server's estimates if the key begins with an integer. Otherwise the server reads all keys once.
func (a *Address) Bounds(ctx context.Context, look sqltable.Session, t *sqltable.Table) ([][][]byte, error) {
	s := look.(*session)
	if t.Columns[t.Key[0]].Kind == record.Integer {
		return s.estimated(ctx, t)
	}
	return s.counted(ctx, t)
}

// piece is a range of integers with the estimated number of rows whose keys begin with one of them.
type piece struct {
	from, to int64 // to is exclusive
	rows     int64
}

// pieces is a heap. Its first element is the piece with the most rows that can still be divided.
type pieces []piece

func (p pieces) Len() int           { return len(p) }
func (p pieces) Less(i, j int) bool { return p[i].weight() > p[j].weight() }
func (p pieces) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *pieces) Push(x any)        { *p = append(*p, x.(piece)) }
func (p *pieces) Pop() (x any)      { x, *p = (*p)[len(*p)-1], (*p)[:len(*p)-1]; return x }

func (p piece) weight() int64 {
	if uint64(p.to)-uint64(p.from) < 2 {
		return -1
	}
	return p.rows
}

// finer is the number of pieces per range.
const finer = 4

// estimated halves the key's range into enough pieces with similar numbers of rows, and then groups the pieces.
func (s *session) estimated(ctx context.Context, t *sqltable.Table) (bounds [][][]byte, err error) {
	first := quote(t.Columns[t.Key[0]].Name)
	ends, err := s.query(ctx, "SELECT MIN("+first+"), MAX("+first+")"+from(t))
	if err != nil {
		return nil, err
	}
	least, err1 := strconv.ParseInt(ends[0][0], 10, 64)
	greatest, err2 := strconv.ParseInt(ends[0][1], 10, 64)
	if err1 != nil || err2 != nil || greatest == math.MaxInt64 {
		return nil, nil // no rows, or keys up to the largest integer
	}
	estimate := func(from, to int64) (piece, error) {
		n, err := s.explain(ctx, fmt.Sprintf("SELECT %s FROM %s FORCE INDEX (PRIMARY) WHERE %[1]s >= %[3]d AND %[1]s < %[4]d",
			first, t.Name, from, to))
		return piece{from, to, n}, err
	}
	whole, err := estimate(least, greatest+1)
	if err != nil {
		return nil, err
	}
	ranges := t.Ranges()
	all := pieces{whole}
	for len(all) < finer*ranges && all[0].weight() > 0 {
		p := heap.Pop(&all).(piece)
		middle := p.from + int64((uint64(p.to)-uint64(p.from))/2)
		for _, half := range [][2]int64{{p.from, middle}, {middle, p.to}} {
			one, err := estimate(half[0], half[1])
			if err != nil {
				return nil, err
			}
			heap.Push(&all, one)
		}
	}
	slices.SortFunc(all, func(a, b piece) int { return cmp.Compare(a.from, b.from) })
	total := int64(0)
	for _, p := range all {
		total += p.rows
	}
	before := int64(0)
	for _, p := range all {
		if n := int64(len(bounds) + 1); before >= n*total/int64(ranges) && len(bounds) < ranges-1 {
			key, err := s.key(ctx, t, fmt.Sprintf(" WHERE %s >= %d", first, p.from), 0)
			if err != nil || key == nil {
				return bounds, err
			}
			if len(bounds) == 0 || !slices.EqualFunc(key, bounds[len(bounds)-1], bytes.Equal) {
				bounds = append(bounds, key)
			}
		}
		before += p.rows
	}
	return bounds, nil
}

// explain returns the server's estimate of the number of rows that a statement reads.
func (s *session) explain(ctx context.Context, sql string) (int64, error) {
	r, err := s.rows(ctx, "EXPLAIN "+sql)
	if err != nil {
		return 0, err
	}
	n := int64(0)
	at := slices.Index(r.rows.Columns(), "rows")
	for r.Next() {
		if at >= 0 {
			n, _ = strconv.ParseInt(string(r.Values()[at]), 10, 64)
		}
	}
	return n, r.Close()
}

// key returns the key of the row at offset after among the rows that match where, or nil if there are fewer.
func (s *session) key(ctx context.Context, t *sqltable.Table, where string, after int64) (key [][]byte, err error) {
	r, err := s.rows(ctx, fmt.Sprintf("SELECT %s%s%s ORDER BY %[1]s LIMIT 1 OFFSET %[4]d", keyNames(t), from(t),
		where, after))
	if err != nil {
		return nil, err
	}
	for r.Next() {
		for _, v := range r.Values() {
			key = append(key, append([]byte{}, v...))
		}
	}
	return key, r.Close()
}

// counted finds one bound after another by counting rows. The server reads every key.
func (s *session) counted(ctx context.Context, t *sqltable.Table) (bounds [][][]byte, err error) {
	rows, err := s.explain(ctx, "SELECT "+keyNames(t)+from(t))
	if err != nil {
		return nil, err
	}
	ranges := t.Ranges()
	step := rows/int64(ranges) + 1
	var key [][]byte
	for len(bounds) < ranges-1 {
		var sql bytes.Buffer
		where(&sql, t, sqltable.Query{Lower: key})
		if key, err = s.key(ctx, t, sql.String(), step); err != nil || key == nil {
			return bounds, err
		}
		bounds = append(bounds, key)
	}
	return bounds, nil
}
