package lifecycle

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func zoneOf(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	must(t, err)
	return zone
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339, text)
	must(t, err)
	return moment
}

func TestANameIsFormattedFromAPeriodAndParsedBack(t *testing.T) {
	for _, tt := range []struct{ template, now, name string }{
		{"consume_{month}", "2024-03-31T23:59:59Z", "consume_202403"},
		{"consume_{month(OrderTime)}", "2024-03-31T23:59:59Z", "consume_202403"},
		{`consume_{ month(OrderTime, "}") }`, "2024-12-01T00:00:00Z", "consume_202412"},
		{"t{year}_rows", "0007-01-01T00:00:00Z", "t0007_rows"},
		{"_{day}", "2024-02-29T12:00:00Z", "_20240229"},
		{"t1{day}", "0000-01-01T00:00:00Z", "t100000101"},
	} {
		template, err := ParseTemplate(tt.template)
		if err != nil {
			t.Errorf("%s: %v", tt.template, err)
			continue
		}
		p, err := template.Unit.Of(at(t, tt.now))
		if err != nil || template.Name(p) != tt.name {
			t.Errorf("%s at %s: %s, %v; want %s", tt.template, tt.now, template.Name(p), err, tt.name)
		}
		if back, err := parseTableName(tt.template, tt.name); err != nil || back != p {
			t.Errorf("%s: %s reads as %s, %v", tt.template, tt.name, back, err)
		}
	}
}

func TestEveryPeriodHasOneName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		template := &Template{Unit: Unit(rapid.IntRange(int(Year), int(Day)).Draw(t, "unit")), prefix: "c_", suffix: rapid.SampledFrom([]string{"", "_x", "7"}).Draw(t, "suffix")}
		first, last := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).Unix()-1
		moment := time.Unix(rapid.Int64Range(first, last).Draw(t, "time"), 0).UTC()
		p, err := template.Unit.Of(moment)
		must(t, err)
		if back, ok := template.Period(template.Name(p)); !ok || back != p {
			t.Fatalf("%s reads as %s, %v", template.Name(p), back, ok)
		}
		start, next := p.Start(time.UTC), Period{p.Unit, p.index + 1}.Start(time.UTC)
		if moment.Before(start) || !moment.Before(next) {
			t.Fatalf("%v is not in %s, from %v to %v", moment, p, start, next)
		}
	})
}

func TestYearsOfOtherThanFourDigitsHaveNoName(t *testing.T) {
	for _, year := range []int{-1, 10000} {
		if p, err := Month.Of(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)); err == nil {
			t.Errorf("year %d is %s", year, p)
		}
	}
}

func TestNamesThatTheTemplateDoesNotMakeHaveNoPeriod(t *testing.T) {
	for template, names := range map[string][]string{
		"consume_{month}": {"consume_2024", "consume_20240301", "consume_202413", "consume_202400", "consume_2024-3", "consume_ 20243", "consume_+20243",
			"consume_２０２４", "consume_", "consume", "Consume_202403", "consume_202403_old", "xconsume_202403", "consume_aaaaaa"},
		"t{day}_x": {"t20230229_x", "t20240132_x", "t2024030_x", "t20240301x", "t20240301_xx"},
		"a{year}a": {"aa", "a", "a202a", "a20240a"},
	} {
		for _, name := range names {
			if p, err := parseTableName(template, name); err == nil {
				t.Errorf("%s: %s is mistaken for %s", template, name, p)
			}
		}
	}
}

func TestTemplatesAreChecked(t *testing.T) {
	for _, text := range []string{
		"", "consume", "consume_{}", "consume_{week}", "consume_{month", "consume_month}", "{month}", "a{month}{day}", "a}{month}", "a{month(x}", "a-{month}",
		"consume_{month}.old", "a{{month}}", `a{month("}`,
	} {
		if got, err := ParseTemplate(text); err == nil {
			t.Errorf("%q is mistaken for %s", text, got)
		}
	}
}

// parseTableName returns the period of one table's name.
func parseTableName(template, name string) (Period, error) {
	t, err := ParseTemplate(template)
	if err != nil {
		return Period{}, err
	}
	p, ok := t.Period(name)
	if !ok {
		return Period{}, fmt.Errorf("table %s is none of %s", name, t)
	}
	return p, nil
}

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
