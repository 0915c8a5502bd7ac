package verify

import (
	"context"
	"slices"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/plan"
)

// nameColumns finds the columns in which examples differ. It rereads their records, unless the input is a stream.
func (v *verifier) nameColumns(ctx context.Context) error {
	open, unnamed, given := map[Place]*Example{}, map[uint64]string{}, map[*Example]shown{}
	known := true
	for i := range v.result.Examples {
		e := &v.result.Examples[i]
		if e.stored != nil {
			open[*e.Input] = e
			known = known && e.cells == nil
		}
		for _, column := range e.unnamed {
			unnamed[column] = ""
		}
	}
	if len(open) == 0 && len(unnamed) == 0 {
		return nil
	}
	if slices.ContainsFunc(v.plan.Sources, func(s *plan.Source) bool { return s.About().Bytes < 0 }) {
		if !known || len(unnamed) > 0 {
			v.result.Notes = append(v.result.Notes, "the input cannot be reread, so the columns that differ are unknown")
		}
		return nil
	}
	request := *v.plan.Request
	p, err := plan.Make(ctx, &request, v.admin)
	if err != nil {
		return err
	}
	defer p.Close()
	left := len(unnamed)
	name := func(c plainbuffer.View) {
		column := v.hasher.ColumnBytes(c.Name)
		if known, wanted := unnamed[column]; wanted && known == "" {
			unnamed[column] = string(c.Name)
			left--
		}
	}
	err = eachSplit(ctx, p, intake.Sums{}, func(parsed *intake.Parsed) error {
		for _, b := range parsed.Blocks {
			for i := range b.Block.Rows {
				ref := table.Ref{Block: b.Block, Index: int32(i)}
				place := Place{File: parsed.Split.Source, Record: parsed.Split.FirstRecord + int64(ref.Row().Number()) + 1}
				if e := open[place]; e != nil {
					delete(open, place)
					if given[e], err = v.differing(e, ref.Body()); err != nil {
						return err
					}
				}
				if left > 0 {
					if _, err := plainbuffer.Walk(ref.Body(), nil, name); err != nil {
						return err
					}
				}
			}
		}
		if len(open) == 0 && left == 0 {
			return intake.ErrEnough
		}
		return nil
	})
	for i := range v.result.Examples {
		e := &v.result.Examples[i]
		for _, column := range e.unnamed {
			e.Columns = append(e.Columns, unnamed[column])
		}
		slices.Sort(e.Columns)
		if cells := given[e]; cells != nil {
			e.values(cells, v.plan.Request.Mode == table.Put)
		}
	}
	return err
}

// differing sets the columns in which an example's rows differ, unless known, and returns the input row's cells.
func (v *verifier) differing(e *Example, body []byte) (given shown, err error) {
	given = shown{}
	if e.cells == nil {
		_, err = plainbuffer.Walk(body, nil, func(c plainbuffer.View) { given.addView(c) })
		return given, err
	}
	e.Columns = []string{}
	_, err = plainbuffer.Walk(body, nil, func(c plainbuffer.View) {
		given.addView(c)
		name := string(c.Name)
		if have, ok := e.cells[name]; !ok || have != v.hasher.Cell(v.hasher.Column(name), &c.Value) {
			e.Columns = append(e.Columns, name)
		}
		delete(e.cells, name)
	})
	for name := range e.cells {
		e.Columns = append(e.Columns, name)
	}
	slices.Sort(e.Columns)
	return given, err
}
