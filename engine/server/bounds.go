package server

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"example.com/tsimport/engine/sim"
	"example.com/tsimport/engine/wire"
)

// present returns a table's simulation, or nil while the simulation is off.
func (m *Simulator) present(name string) *simTable {
	if !m.on.Load() {
		return nil
	}
	return m.find([]byte(name))
}

func (m *Simulator) answers(name []byte) (a sim.Answers) {
	if st := m.present(string(name)); st != nil {
		a = st.Answers()
	}
	return a
}

// splits returns a table's bounds as in DescribeTable, as rows with only the partition key.
func (m *Simulator) splits(d *wire.TableDescription) (rows [][]byte) {
	st := m.present(d.Name)
	if st == nil {
		for i := range d.Bounds {
			rows = append(rows, wire.AppendRow(wire.AppendHeader(nil), d.Bounds[i:i+1], nil))
		}
		return rows
	}
	if st.Answers().HideBounds {
		return nil
	}
	for _, k := range st.Bounds(m.server.o.Now()) {
		c := wire.Cell{Name: []byte(st.key.Name), Type: st.key.Type.ValueType(), Value: []byte(k)}
		if n, ok := k.Integer(); ok && c.Type == wire.Integer {
			c.Value = binary.LittleEndian.AppendUint64(nil, uint64(n))
		}
		rows = append(rows, wire.AppendRow(wire.AppendHeader(nil), []wire.Cell{c}, nil))
	}
	return rows
}

// locations returns the location of each split between points, run-length encoded: Repeat adds up to len(points)+1.
func (m *Simulator) locations(d *wire.TableDescription, points [][]byte) []wire.Location {
	place := m.places(d)
	locations := []wire.Location{{Name: place("", 0), Repeat: 1}}
	var dec wire.Decoder
	for i, p := range points {
		row, err := dec.Row(p)
		if err != nil {
			panic(err) // impossible: the store encoded it
		}
		name := place(cellKey(&row.Key[0]), i+1)
		if last := &locations[len(locations)-1]; last.Name == name {
			last.Repeat++
		} else {
			locations = append(locations, wire.Location{Name: name, Repeat: 1})
		}
	}
	return locations
}

// places returns a function that returns the location of split n, counted from 0, given its first key.
func (m *Simulator) places(d *wire.TableDescription) func(key sim.Key, n int) string {
	st, bounds, each := m.present(d.Name), cellKeys(d.Bounds), 1
	if st != nil {
		switch st.Answers().Locations {
		case sim.LocateNothing:
			return func(sim.Key, int) string { return "" }
		case sim.LocateBlocks:
			return func(_ sim.Key, n int) string { return locationName(n + 1) }
		case sim.LocateNodes:
			bounds, each = st.Bounds(m.server.o.Now()), sim.NodePartitions
		default:
			return func(key sim.Key, _ int) string { return locationName(st.Owner(key)) }
		}
	}
	return func(key sim.Key, _ int) string {
		below, at := slices.BinarySearch(bounds, key)
		if at {
			below++
		}
		return locationName(1 + below/each)
	}
}

// newSimTable makes the simulation of a table, with the partitions that CreateTable requested or, without any, those of
// c.
func newSimTable(c sim.Config, bounds []wire.Cell, now time.Time) *sim.Table {
	if len(bounds) == 0 {
		return sim.NewTable(c, now)
	}
	t := sim.NewTable(sim.Config{Seed: c.Seed}, now)
	_ = t.Cut(now, cellKeys(bounds), 0) // wire.MaxTablePartitions is below the limit of Cut
	t.Configure(c, now)
	return t
}

// locationName returns the name of a partition's location. It has 32 characters, as in the service.
func locationName(partition int) string { return fmt.Sprintf("partition-%022d", partition) }

// keyJSON returns a key as in the admin API: a string, a number, or {"binary": base64}.
func keyJSON(key wire.KeyColumn, k sim.Key) any {
	switch key.Type {
	case wire.KeyInteger:
		n, _ := k.Integer()
		return n
	case wire.KeyString:
		return string(k)
	}
	return map[string][]byte{"binary": []byte(k)}
}
