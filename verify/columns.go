package verify

import (
	"context"
	"slices"

	"tsimport/internal/table"
	"tsimport/internal/tablestore/plainbuffer"
	"tsimport/pipeline/intake"
	"tsimport/pipeline/plan"
)

// nameColumns finds out in which columns the examples differ. A row that is replaced was kept as one number, so the
// records of the examples are read again; a stream cannot be.
func (v *verifier) nameColumns(ctx context.Context) error {
	open := map[Place]*Example{}
	for i := range v.result.Examples {
		if e := &v.result.Examples[i]; e.cells != nil {
			open[*e.Input] = e
		}
	}
	if len(open) == 0 {
		return nil
	}
	for _, s := range v.plan.Sources {
		if s.About().Bytes < 0 {
			v.result.Notes = append(v.result.Notes, "the input cannot be read again, so the columns that differ are not known")
			return nil
		}
	}
	request := *v.plan.Request
	p, err := plan.Make(ctx, &request, v.admin)
	if err != nil {
		return err
	}
	defer p.Close()
	return eachSplit(ctx, p, func(parsed *intake.Parsed) error {
		for _, b := range parsed.Blocks {
			for i := range b.Block.Rows {
				ref := table.Ref{Block: b.Block, Index: int32(i)}
				place := Place{File: parsed.Split.Source, Record: parsed.Split.FirstRecord + int64(ref.Row().Number()) + 1}
				if e := open[place]; e != nil {
					delete(open, place)
					if err := v.differing(e, ref.Body()); err != nil {
						return err
					}
				}
			}
		}
		if len(open) == 0 {
			return errEnough
		}
		return nil
	})
}

// differing names the columns in which the table's row, as it was seen, is not the input's.
func (v *verifier) differing(e *Example, body []byte) error {
	e.Columns = []string{}
	_, err := plainbuffer.Walk(body, nil, func(c plainbuffer.View) {
		name := string(c.Name)
		if have, ok := e.cells[name]; !ok || have != v.hasher.cell(v.hasher.column(name), c.Value) {
			e.Columns = append(e.Columns, name)
		}
		delete(e.cells, name)
	})
	for name := range e.cells {
		e.Columns = append(e.Columns, name)
	}
	slices.Sort(e.Columns)
	return err
}
