package lifecycle

import (
	"fmt"
	"testing"
)

func TestAChangeIsWhatTheClassWantsAndTheTableLacks(t *testing.T) {
	p := parsed(t, `period: month
classes:
  - {up_to: 0, reserved: {read: 0, write: 5000}, ttl: -1, max_versions: 1}
  - {up_to: 1, reserved: {write: 7}}
  - {up_to: 2, ttl: 86400}
  - {up_to: 3, max_versions: 2}
  - {archive: old}`)
	for _, tt := range []struct {
		month             string
		have              Table
		want              string
		reserves, options bool
		shortens, expired bool
	}{
		{"202405", Table{"c", 0, 5000, -1, 1}, "[]", false, false, false, false},
		{"202406", Table{"c", 3, 0, 86400, 2}, "[{reserved.read 3 0} {reserved.write 0 5000} {ttl 86400 -1} {max_versions 2 1}]", true, true, true, false},
		{"202404", Table{"c", 3, 5, 86400, 2}, "[{reserved.write 5 7}]", true, false, false, false},
		{"202403", Table{"c", 3, 5, -1, 2}, "[{ttl -1 86400}]", false, true, true, false},
		{"202403", Table{"c", 3, 5, 86401, 2}, "[{ttl 86401 86400}]", false, true, true, false},
		{"202403", Table{"c", 3, 5, 3600, 2}, "[{ttl 3600 86400}]", false, true, false, false},
		{"202402", Table{"c", 3, 5, -1, 1}, "[{max_versions 1 2}]", false, true, false, false},
		{"202401", Table{"c", 3, 5, -1, 9}, "[]", false, false, false, true},
	} {
		period, err := parseTableName("c{month}", "c"+tt.month)
		must(t, err)
		c := p.Change(period, tt.have, at(t, "2024-05-15T00:00:00Z"))
		got := fmt.Sprint(c.Settings())
		if got != tt.want || c.Reserves() != tt.reserves || c.Options() != tt.options || c.Shortens() != tt.shortens || c.Expired() != tt.expired {
			t.Errorf("%s %+v: %s, reserves %v, options %v, shortens %v, expired %v", tt.month, tt.have, got, c.Reserves(), c.Options(), c.Shortens(), c.Expired())
		}
	}
}

func TestTheTablesOfATemplateAreSortedOutOfAllNames(t *testing.T) {
	template, err := ParseTemplate("c_{month}")
	must(t, err)
	tables, others := template.Matching([]string{"c_202402", "other", "c_old", "c_202312", "c_202313", "c_000001", "c"})
	if fmt.Sprint(tables, others) != "[c_000001 c_202312 c_202402] [c_202313 c_old]" {
		t.Errorf("%v, %v", tables, others)
	}
}
