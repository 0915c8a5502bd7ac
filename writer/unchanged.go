package writer

import (
	"encoding/binary"
	"fmt"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// annotateUnchanged takes what each row says of the stored one out of its cells and into its condition. A row that says nothing is new.
func (w *Writer) annotateUnchanged(rows []table.Ref, outcomes []table.Outcome) error {
	d := &w.sent
	d.conds, d.condEnds = d.conds[:0], d.condEnds[:0]
	for i, r := range rows {
		var filter []byte
		was := false
		_, err := plainbuffer.Walk(r.Body(), nil, func(v plainbuffer.View) {
			if string(v.Name) == table.UnchangedColumn {
				was, filter = true, v.Value.Bytes
			}
		})
		row := r.Body()
		if err == nil && was {
			d.bare, err = plainbuffer.AppendWithout(d.bare[:0], row, table.UnchangedColumn)
			row = d.bare
		}
		switch {
		case err != nil:
		case w.options.Stamps != nil:
			d.stamps = append(d.stamps, outcomes[i].Stamp)
			d.data, err = plainbuffer.AppendStamped(d.data, row, outcomes[i].Stamp)
		default:
			d.data = append(d.data, row...)
		}
		if err != nil {
			return fmt.Errorf("write to table %s: %w", w.table, err)
		}
		d.ends = append(d.ends, len(d.data))
		existence := table.ExpectNotExist
		if was {
			existence = table.ExpectExist
		}
		d.conds = append(d.conds, tagRowExistence, expectations[existence])
		if len(filter) > 0 {
			d.conds = binary.AppendUvarint(append(d.conds, tagColumnCondition), uint64(len(filter)))
			d.conds = append(d.conds, filter...)
		}
		d.condEnds = append(d.condEnds, len(d.conds))
	}
	return nil
}
