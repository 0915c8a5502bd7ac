package readorder

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

func TestSchedulesComeBackFromTheirFile(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	sections := drawSections(r, 100, 500)
	for i := range sections {
		sections[i].Source, sections[i].Line, sections[i].Offset = 3+i/50, int64(i)<<20, int64(i)<<40
		sections[i].Sum.Write([]byte{byte(i)})
	}
	all := []*Schedule{Make(3, 2, sections, Order(sections, 0)), Make(7, 1, nil, nil)}
	all[1].Sections = nil
	file := Encode(all)
	got, err := Decode(file)
	if err != nil || !reflect.DeepEqual(got, all) {
		t.Fatalf("%v, error %v", got, err)
	}
	for n := range file {
		if _, err := Decode(file[:n]); err == nil {
			t.Fatalf("the first %d bytes of %d are taken for a whole file", n, len(file))
		}
	}
	foreign := Encode([]*Schedule{{Source: 3, Sources: 1, Sections: []Section{{Source: 4, Records: 1}}}})
	if _, err := Decode(foreign); err == nil {
		t.Error("a section of another source is taken")
	}
}

func FuzzDecode(f *testing.F) {
	sections := drawSections(rand.New(rand.NewPCG(2, 9)), 5, 20)
	f.Add(Encode([]*Schedule{Make(0, 1, sections, Order(sections, 0))}))
	f.Fuzz(func(t *testing.T, file []byte) {
		all, err := Decode(file)
		if err != nil {
			return
		}
		if again, err := Decode(Encode(all)); err != nil || !reflect.DeepEqual(again, all) {
			t.Errorf("%v becomes %v, error %v", all, again, err)
		}
	})
}

func TestPlacesAreThoseOfTheScheduleOrOfTheInput(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	sections := drawSections(r, 60, 100)
	second, record := 30, sections[30].Record // where the second source begins
	for i := second; i < len(sections); i++ {
		sections[i].Source, sections[i].Record = 1, sections[i].Record-record
	}
	s := Make(4, 2, sections, Order(sections, 0))
	for i := range s.Sections {
		s.Sections[i].Source += 4
	}
	left := s.Sections[len(s.Sections)-1]
	s.Sections = s.Sections[:len(s.Sections)-1] // as with a limit of records
	places := NewPlaces([]*Schedule{s, {Source: 9, Sources: 1, Sections: []Section{{Source: 9, Records: 2}}}})
	number := int64(0)
	for _, one := range s.Sections {
		for record := one.Record; record < one.Record+one.Records; record++ {
			if at, n, comes := places.Find(one.Source, record); at != 4 || n != number || !comes {
				t.Fatalf("record %d of source %d comes as %d of %d (%v), want %d", record, one.Source, n, at, comes, number)
			}
			number++
		}
	}
	for _, tt := range []struct {
		source      int
		record      int64
		at          int
		number      int64
		doesNotCome bool
	}{
		{source: 3, record: 7, at: 3, number: 7}, {source: 6, record: 0, at: 6, number: 0}, {source: 9, record: 1, at: 9, number: 1},
		{source: left.Source, record: left.Record, doesNotCome: true}, {source: 9, record: 2, doesNotCome: true}, {source: 5, record: 1 << 30, doesNotCome: true},
	} {
		if at, n, comes := places.Find(tt.source, tt.record); comes == tt.doesNotCome || comes && (at != tt.at || n != tt.number) {
			t.Errorf("record %d of source %d comes as %d of %d (%v), want %+v", tt.record, tt.source, n, at, comes, tt)
		}
	}
	if at, n, comes := NewPlaces(nil).Find(2, 5); at != 2 || n != 5 || !comes {
		t.Errorf("without schedules record 5 of source 2 comes as %d of %d (%v)", n, at, comes)
	}
}
