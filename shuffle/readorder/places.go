package readorder

import (
	"cmp"
	"slices"
)

// Places maps records' places in the inputs to their places in reading order. It is safe for concurrent use.
type Places struct {
	schedules []*Schedule
	sections  []placed
}

// placed is a section and the number of records before it in its schedule.
type placed struct {
	source          int
	record, records int64
	first           int // first source of the schedule
	before          int64
}

// NewPlaces makes the Places of inputs, some of them read by schedules.
func NewPlaces(all []*Schedule) *Places {
	p := &Places{schedules: all}
	for _, s := range all {
		before := int64(0)
		for i := range s.Sections {
			one := &s.Sections[i]
			p.sections = append(p.sections, placed{one.Source, one.Record, one.Records, s.Source, before})
			before += one.Records
		}
	}
	slices.SortFunc(p.sections, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(a.record, b.record))
	})
	return p
}

// Find returns a record's source and number in reading order. comes is false for records that the schedules omit.
func (p *Places) Find(source int, record int64) (at int, number int64, comes bool) {
	i, found := slices.BinarySearchFunc(p.sections, record, func(s placed, record int64) int {
		return cmp.Or(cmp.Compare(s.source, source), cmp.Compare(s.record, record))
	})
	if !found {
		i--
	}
	if i >= 0 && p.sections[i].source == source && record-p.sections[i].record < p.sections[i].records {
		s := &p.sections[i]
		return s.first, s.before + record - s.record, true
	}
	for _, s := range p.schedules {
		if source >= s.Source && source < s.Source+s.Sources {
			return 0, 0, false
		}
	}
	return source, record, true
}
