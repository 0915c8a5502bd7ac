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
	all := []*Schedule{Make(3, 2, sections, 0), Make(7, 1, nil, 0)}
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
	f.Add(Encode([]*Schedule{Make(0, 1, drawSections(rand.New(rand.NewPCG(2, 9)), 5, 20), 0)}))
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
