package sqltable

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// Reread returns the rows with these keys, read in a snapshot of their own.
func (o *Origin) Reread(ctx context.Context, keys [][]table.Value) (source.Source, error) {
	if o.cfg.Shards != nil { // would query every shard for every key, in one snapshot
		return nil, fmt.Errorf("rows of %s cannot be looked up: it is several tables read as one", o.cfg.Server.Shown())
	}
	cfg := o.cfg
	cfg.Moment, cfg.Whole = nil, false // the rows as they are now
	again := New(cfg)
	o.mu.Lock()
	again.of = o.of // describe fails if the table has been altered since
	o.mu.Unlock()
	if err := again.describe(ctx); err != nil {
		return nil, err
	}
	again.opens, again.left = 1, 1
	t := again.of
	p := &part{of: again, t: t, ctx: ctx, name: o.cfg.Server.Name(), only: [][][]byte{}}
	for _, k := range t.Key {
		if c := &t.Columns[k]; c.Read != nil || !slices.Contains([]record.Kind{record.Integer, record.String, record.Binary},
			c.Kind) {
			_ = p.Close() // nothing has been read
			return nil, fmt.Errorf("rows of %s cannot be looked up by the keys in the target table because of the "+
				"type of key column %s", t.Name, c.Name)
		}
	}
	typed, _ := o.cfg.Server.(Typed)
	for _, key := range keys {
		texts, may := make([][]byte, len(key)), true
		for i, v := range key {
			if texts[i] = v.Bytes; v.Type == table.Integer {
				texts[i] = strconv.AppendInt(nil, v.Int, 10)
			}
			may = may && (typed == nil || typed.MayHold(&t.Columns[t.Key[i]], texts[i]))
		}
		if may { // otherwise no row has this key
			p.only = append(p.only, texts)
		}
	}
	return p, nil
}

// pageOfKeys reads the rows with the next keys in only.
func (p *part) pageOfKeys(ctx context.Context, by Session) (*page, error) {
	pg := &page{of: p.t, text: newText(pageBytes)}
	at, rest := make([]keyAt, len(p.t.Key)), p.only
	for ; len(rest) > 0 && len(pg.text) < pageBytes && pg.rows < maxPageRows; rest = rest[1:] {
		// If a row has the key, it is the first row from the key on.
		rows, err := by.Page(ctx, p.t, Query{Lower: rest[0], Limit: 1, Once: true})
		if err != nil {
			return nil, err
		}
		if rows.Next() {
			values := rows.Values()
			err = p.fits(values)
			has := func(k int, value []byte) bool { return values[k] != nil && bytes.Equal(values[k], value) }
			found := err == nil
			for i, k := range p.t.Key {
				found = found && has(k, rest[0][i])
			}
			if found {
				pg.add(values, at)
			}
		}
		if closeErr := rows.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return nil, err
		}
	}
	p.only, pg.bytes = rest, int64(cap(pg.text))
	return pg, nil
}
