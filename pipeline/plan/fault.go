package plan

import (
	"strings"

	"example.com/tsimport/reader"
)

// AtFault reports whether a source's content makes it unreadable, in that a second reading fails at the same place.
func (p *Plan) AtFault(s *Source, err error) bool {
	if !reader.Damaged(err) {
		return false
	}
	again := p.ReadAgain(s)
	return again != nil && reader.Damaged(again) && strings.Contains(err.Error(), again.Error())
}

// ReadAgain reads a file to its end and returns the error, if any. It does nothing for other sources.
func (p *Plan) ReadAgain(s *Source) error {
	if file, ok := s.Source.(*reader.File); ok {
		return file.ReadAgain(p.Shares().Pages)
	}
	return nil
}

// StillBad returns, by name, why those files for which is returns true cannot be read to their end.
func (p *Plan) StillBad(is func(name string) bool) map[string]string {
	bad := map[string]string{}
	for _, s := range p.Sources {
		if !is(s.Name) {
			continue
		}
		if err := p.ReadAgain(s); reader.Damaged(err) {
			bad[s.Name] = err.Error()
		}
	}
	return bad
}
