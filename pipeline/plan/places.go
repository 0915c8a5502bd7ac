package plan

import (
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// A sample has a few records from each of several places all over the inputs, because records of a sorted file differ
// from place to place. If only the beginning of an input can be read, the sample there is longer.
const (
	samplePlaces     = 64
	placeRecords     = 40 // number of records from each place
	placeSkipped     = 2  // number of records to skip at a place in a text, where the first may be incomplete
	placeBytes       = 64 << 10
	beginningBytes   = 4 << 20
	beginningRecords = samplePlaces * placeRecords
)

// taker takes a record of a sample, and reports whether it counts. whole means that the record is certainly complete.
type taker func(rec *record.Record, whole bool) bool

func (p *Plan) placesOf(s *Source) int {
	if s.Anywhere() && p.Bytes > 0 {
		return int(max(1, samplePlaces*s.About().Bytes/max(p.Bytes, p.Request.ItemsOf)))
	}
	return 1
}

func (p *Plan) visitor(s *Source, take taker) *visitor {
	return &visitor{plan: p, source: s, take: take, most: beginningRecords, budget: beginningBytes}
}

type visitor struct {
	plan   *Plan
	source *Source
	take   taker
	begins func() // called at each place; may be nil

	most, budget int // maximum records and bytes from a source with one place
}

// look takes a sample at a number of places of the source, and leaves the source at its beginning.
func (v *visitor) look(places int) error {
	begin := v.source.Begin()
	if v.source.About().Live { // it is one of many parts, each with the rows of its range
		return v.at(begin, placeBytes, 0, placeRecords)
	}
	if places < 2 {
		return v.at(begin, v.budget, 0, v.most)
	}
	for _, at := range v.places(begin, places) {
		skip := placeSkipped
		if at.Offset == begin.Offset {
			skip = 0 // the first record is complete, as are rows of Parquet
		}
		if err := v.at(at, placeBytes, skip, placeRecords); err != nil {
			return err
		}
	}
	v.source.Seek(begin, source.Chain{})
	return nil
}

// places returns n places all over the source. In a text, records need not begin there.
func (v *visitor) places(begin source.Place, n int) (places []source.Place) {
	size, rows := v.source.About().Bytes, v.rows()
	for i := range int64(n) {
		at := begin
		if rows > 0 {
			at.Record = rows / int64(n) * i
		} else {
			at.Offset += (size - begin.Offset) / int64(n) * i
		}
		places = append(places, at)
	}
	return places
}

// rows returns the number of rows that a source states, or 0 if it does not state it.
func (v *visitor) rows() (rows int64) {
	defer v.source.Suspend()
	for {
		piece, err := v.source.Next()
		if err != nil {
			return rows
		}
		splits, err := v.source.Add(piece) // a piece need not be prepared if the source states its rows
		if err != nil || len(splits) == 0 || splits[0].Rows == 0 {
			return 0
		}
		for _, sp := range splits {
			rows += sp.Rows
		}
	}
}

// at takes a sample of at most most records, from a place on.
func (v *visitor) at(place source.Place, budget, skip, most int) error {
	if v.source.Anywhere() {
		v.source.Seek(place, source.Chain{})
	}
	if v.begins != nil {
		v.begins()
	}
	whole := skip == 0
	_, err := v.source.Sample(budget, v.plan.sources(), func(rec *record.Record) {
		if skip--; skip >= 0 || most <= 0 {
			return
		}
		if v.take(rec, whole) {
			most--
		}
	})
	if err != nil {
		return err
	}
	if f, ok := v.source.Source.(interface{ SampleError() error }); ok && whole && f.SampleError() != nil {
		v.plan.Broken = append(v.plan.Broken, f.SampleError())
	}
	return v.source.Suspend()
}

// Part returns the plan for reading one source from a place on, in its own order. Only one of a source's plans may be
// used at a time; Suspend leaves the source at its beginning.
func (p *Plan) Part(ordinal int, from source.Place) (*Plan, error) {
	part, request, s := *p, *p.Request, p.Sources[ordinal]
	if err := s.Suspend(); err != nil {
		return nil, err
	}
	if from.Record == 0 && from.Key == nil {
		from = s.beginning
	}
	s.Seek(from, source.Chain{})
	request.Order, request.Records, request.Keep = LastWins, 0, KeepNothing
	part.Request, part.Sources, part.Parallel = &request, []*Source{s}, false
	return &part, nil
}

// KeySample returns values of the first key column of rows from several places all over the inputs, or from their
// beginnings, in order within each place. It leaves the sources at their beginnings.
func (p *Plan) KeySample() (places [][]table.Value, err error) {
	for _, s := range p.sampled() {
		one, err := p.newKeySampler(s)
		if err != nil {
			return nil, err
		}
		v := p.visitor(s, one.take)
		v.begins = one.begin
		if err := v.look(p.placesOf(s)); err != nil {
			return nil, err
		}
		places = append(places, one.places...)
	}
	return places, nil
}
