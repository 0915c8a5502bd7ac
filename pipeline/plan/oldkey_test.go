package plan

import (
	"slices"
	"testing"

	"tsimport/internal/table"
	"tsimport/reader/record"
	"tsimport/reader/source"
)

// keyed is a source of rows that had a key.
type keyed struct {
	source.Source
	about source.About
}

func (k keyed) About() source.About { return k.about }

func TestColumnsOfOldAndNewKeysHaveNamesOfTheirOwn(t *testing.T) {
	unique := []source.KeyColumn{{Name: "room", Kind: record.String}, {Name: "id", Kind: record.Integer}}
	p := &Plan{Wide: true, Sources: []*Source{{Source: keyed{about: source.About{Unique: unique}}}}, Schema: &table.Schema{Numbered: 1}}
	for _, c := range []struct{ key, want []string }{
		{[]string{"room", "id"}, []string{"file", "record", "room", "id", "old_room", "old_id"}},
		{[]string{"old_id", "id"}, []string{"file", "record", "old_id", "id", "old__room", "old__id"}},
	} {
		p.Schema.Key = nil
		for _, name := range c.key {
			p.Schema.Key = append(p.Schema.Key, table.KeyColumn{Name: name})
		}
		if got := p.ReturnedHeader(); !slices.Equal(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	p.Wide = false
	if got := p.ReturnedHeader(); len(got) != 4 || p.OldKey() != nil {
		t.Errorf("rows of files have no old key: %q", got)
	}
}
