package store

import (
	"context"
	"time"

	"example.com/tsimport/engine/wire"
)

// reserve changes the reserved throughput as requested. A request for the current values is not a change.
func (m *meta) reserve(t *wire.Throughput, now time.Time, interval time.Duration) *wire.Error {
	read, write := t.Read.Or(m.Read), t.Write.Or(m.Write)
	if read == m.Read && write == m.Write {
		return nil
	}
	if m.Adjusted != 0 {
		// If the clock was set back, the time since the last change is unknown.
		if since := now.Sub(time.UnixMilli(m.Adjusted)); since >= 0 && since < interval {
			return wire.Fail(wire.CodeTooFrequentReservation)
		}
	}
	m.Adjusted = now.UnixMilli()
	if read > m.Read || write > m.Write {
		m.LastIncrease = now.Unix()
	}
	if read < m.Read || write < m.Write {
		m.LastDecrease = now.Unix()
	}
	m.Read, m.Write = read, write
	return nil
}

// UpdateDefined adds or deletes predefined columns. It does not change stored cells.
func (s *Store) UpdateDefined(ctx context.Context, r *wire.DefinedColumns) *wire.Error {
	s.ddl.Lock()
	defer s.ddl.Unlock()
	t, m, err := s.noIndex(r.Name, "update index table directly")
	if err != nil {
		return err
	}
	for _, x := range m.Indexes {
		for _, name := range r.Delete {
			if x.has(name) {
				return wire.Invalid("Defined column '%s' is used by index '%s'.", name, x.Name)
			}
		}
	}
	if m.Defined, err = r.Apply(m.Key, m.Defined); err != nil {
		return err
	}
	if err := s.saveTable(ctx, s.db.NewBatch(), &m); err != nil {
		return err
	}
	t.meta.Store(&m)
	return nil
}

// savedBounds returns the stored form of partition bounds.
func savedBounds(bounds []wire.Cell) (saved [][]byte) {
	for i := range bounds {
		saved = append(saved, wire.AppendVariant(nil, &bounds[i]))
	}
	return saved
}

// partitionBounds returns the bounds of the partitions with which the table was created.
func (m *meta) partitionBounds() (bounds []wire.Cell) {
	for _, b := range m.Bounds {
		c := wire.Cell{Name: []byte(m.Key[0].Name)}
		var ok bool
		if c.Type, c.Value, _, ok = wire.ReadVariant(b); ok {
			bounds = append(bounds, c)
		}
	}
	return bounds
}
