package plan

import (
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/source"
)

// Part is the plan of reading one source, from a place on, in its own order. Of the plans that Part makes for a source one may be used at a
// time; the source is left at its beginning by Suspend.
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

// KeySample returns values of the first key column of rows from some places all over the inputs, or from their beginnings; those of each place
// in their order. It leaves the sources at their beginnings.
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
