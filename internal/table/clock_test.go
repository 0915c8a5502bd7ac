package table

import (
	"testing"
	"time"
	_ "time/tzdata"

	"example.com/tsimport/internal/conformance"
)

func TestALocalTimeIsAnInstantOrNone(t *testing.T) {
	for _, tt := range []struct{ zone, wall, want string }{
		{"America/New_York", "2024-03-10 01:59:59", "2024-03-10T06:59:59Z"},
		{"America/New_York", "2024-03-10 02:00:00", ""},
		{"America/New_York", "2024-03-10 02:59:59", ""},
		{"America/New_York", "2024-03-10 03:00:00", "2024-03-10T07:00:00Z"},
		{"America/New_York", "2024-11-03 00:59:59", "2024-11-03T04:59:59Z"},
		{"America/New_York", "2024-11-03 01:30:00", "2024-11-03T05:30:00Z"}, // the first
		{"America/New_York", "2024-11-03 02:00:00", "2024-11-03T07:00:00Z"},
		{"Europe/Berlin", "2024-03-31 02:30:00", ""},
		{"Europe/Berlin", "2024-03-31 03:00:00", "2024-03-31T01:00:00Z"},
		{"Europe/Berlin", "2024-10-27 02:00:00", "2024-10-27T00:00:00Z"},
		{"Europe/Berlin", "2024-10-27 02:30:00", "2024-10-27T00:30:00Z"}, // the first
		{"Europe/Berlin", "2024-10-27 03:00:00", "2024-10-27T02:00:00Z"},
		{"Australia/Lord_Howe", "2024-10-06 02:00:00", ""},
		{"Australia/Lord_Howe", "2024-10-06 02:29:59", ""},
		{"Australia/Lord_Howe", "2024-10-06 02:30:00", "2024-10-05T15:30:00Z"},
		{"Australia/Lord_Howe", "2024-04-07 01:45:00", "2024-04-06T14:45:00Z"}, // the first
		{"Asia/Shanghai", "1991-04-14 02:30:00", ""},
		{"Asia/Shanghai", "1991-09-15 01:30:00", "1991-09-14T16:30:00Z"}, // the first
		{"Asia/Shanghai", "2024-04-14 02:30:00", "2024-04-13T18:30:00Z"},
		{"Pacific/Apia", "2011-12-29 23:59:59", "2011-12-30T09:59:59Z"},
		{"Pacific/Apia", "2011-12-30 12:00:00", ""},
		{"Pacific/Apia", "2011-12-31 00:00:00", "2011-12-30T10:00:00Z"},
		{"UTC", "2024-03-10 02:30:00", "2024-03-10T02:30:00Z"},
	} {
		zone, err := time.LoadLocation(tt.zone)
		if err != nil {
			t.Fatal(err)
		}
		wall, err := time.Parse(time.DateTime, tt.wall)
		if err != nil {
			t.Fatal(err)
		}
		at, ok := LocalTime(wall, zone)
		got := ""
		if ok {
			got = at.UTC().Format(time.RFC3339)
			conformance.Equal(t, at.In(zone).Format(time.DateTime), tt.wall, "%s in %s", tt.wall, tt.zone)
		}
		conformance.Equal(t, got, tt.want, "%s in %s", tt.wall, tt.zone)
	}
}

func TestEveryInstantIsFoundByItsWallClock(t *testing.T) {
	for _, name := range []string{"America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Shanghai", "Pacific/Apia", "Africa/Casablanca"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		found := map[int64]time.Time{}
		for at := time.Date(1991, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() < 2025; at = at.Add(30 * time.Minute) {
			switch at.Year() { // turns in Shanghai, a day that Apia left out, today's turns
			case 1992:
				at = at.AddDate(2011-1992, 0, 0)
			case 2012:
				at = at.AddDate(2024-2012, 0, 0)
			}
			_, offset := at.In(zone).Zone()
			wall := at.Add(time.Duration(offset) * time.Second)
			got, ok := LocalTime(wall, zone)
			first, twice := found[wall.Unix()]
			if !twice {
				first = at
				found[wall.Unix()] = at
			}
			if !ok || !got.Equal(first) {
				t.Fatalf("%s in %s: %s (%v), want %s", wall, name, got, ok, first)
			}
		}
	}
}
