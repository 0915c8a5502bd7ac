package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

func TestLocationsAreThePartitionsTheTableWasCreatedWith(t *testing.T) {
	s := open(t, Options{})
	createNumbered(t, s) // cut at "m"
	c := inProcess(s)
	value := strings.Repeat("x", 700<<10)
	for _, p := range []string{"a", "b", "c", "d", "m", "n", "o", "p"} {
		r := numbering(p)
		r.AddColumn("x", value)
		must(t, putRow(c, r))
	}
	for _, simulated := range []bool{false, true} {
		if simulated {
			must(t, s.Sim().Simulate("", Simulation{}))
		}
		unit := int64(1 << 20)
		r, err := c.ComputeSplitPointsBySize(&tablestore.ComputeSplitPointsBySizeRequest{TableName: "t", SplitSize: 1, SplitSizeUnitInByte: &unit})
		must(t, err)
		var got []string
		names := map[string]int{}
		for _, split := range r.Splits {
			if names[split.Location] == 0 {
				names[split.Location] = len(names) + 1
			}
			got = append(got, fmt.Sprintf("%v %d", split.LowerBound.PrimaryKeys[0].Value, names[split.Location]))
		}
		if want := "[<nil> 1 c 1 m 2 o 2]"; fmt.Sprint(got) != want {
			t.Errorf("simulated %t: got %v, want %s", simulated, got, want)
		}
	}
}
