package lanes

import (
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/ledger"
)

func TestPartitionsThatShareTheWaitAreNotNamed(t *testing.T) {
	waited := func(seconds ...float64) *ledger.ReportSlowest {
		s := new(Set)
		var bounds []table.Value
		for i, waited := range seconds {
			bounds = append(bounds, table.Value{Type: table.Integer, Int: int64(i)})
			s.all = append(s.all, &lane{index: i, turn: turn{begun: time.Now()}, backlog: backlog{waiting: time.Duration(waited * float64(time.Second))}})
		}
		s.Partitions = partitioner.NewMap(bounds[1:])
		return s.slowest(100 * time.Second)
	}
	for name, s := range map[string]*ledger.ReportSlowest{
		"one partition":            waited(90),
		"all of them":              waited(90, 80, 85, 88),
		"half of them":             waited(90, 80, 1, 60, 70),
		"a small part of the load": waited(20, 1, 1, 1),
		"none":                     waited(0, 0, 0),
	} {
		conformance.Equal(t, s, nil, "%s", name)
	}
	for want, s := range []*ledger.ReportSlowest{waited(90, 1), waited(1, 90, 30), waited(1, 2, 60, 3)} {
		if s == nil || s.Partition != want {
			t.Errorf("partition %d is to be named: %+v", want, s)
		}
	}
}
