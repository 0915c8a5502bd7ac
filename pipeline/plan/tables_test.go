package plan

import (
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/lifecycle"
	"example.com/tsimport/internal/table"
)

// namerOf compiles a template against the columns at (text), n (integer) and shop (text).
func namerOf(t *testing.T, text string) *Namer {
	t.Helper()
	tables, err := parseTables(text, nil)
	must(t, err)
	p := &planner{plan: &Plan{Tables: tables, env: keyexpr.Env{Columns: []keyexpr.Input{
		{Name: "at", Type: table.String}, {Name: "n", Type: table.Integer}, {Name: "shop", Type: table.String},
	}}}}
	conformance.MustEqual(t, p.compileTables(), nil, "%s", text)
	return tables.NewNamer()
}

func textValue(s string) table.Value { return table.Value{Type: table.String, Bytes: []byte(s)} }

func TestTableNamesComeFromPeriodsAndOtherExpressions(t *testing.T) {
	row := []table.Value{textValue("2024-03-31 20:00:00"), {Type: table.Integer, Int: 1_711_915_200}, textValue("north")}
	for text, want := range map[string]string{
		"t_{year(at)}":                             "t_2024",
		"t_{month(at)}":                            "t_202403",
		"t_{day(at)}_x":                            "t_20240331_x",
		`t_{ month( at , "Asia/Shanghai" ) }`:      "t_202403", // text without an offset is in the zone
		`t_{day(n, "s", "Asia/Shanghai")}`:         "t_20240401",
		`t_{day(n, "s")}`:                          "t_20240331",
		"{shop}_{n % 7}":                           "north_2",
		"t_{upper(shop)}_{month(at)}":              "t_NORTH_202403",
		`t_{shop + "}{"[2:]}`:                      "t_north",
		"t_{int(month(at)) + int(day(at))}":        "t_34",
		`{shop == "north" ? "n" : "s"}`:            "n",
		`t_{month(at ?? "2020-01-01", "UTC")}`:     "t_202403",
		`t_{format_time(at, "200601")}`:            "t_202403",
		`t_{month(substr(at, 1, 10), 'UTC')}_tail`: "t_202403_tail",
	} {
		name, archived, why := namerOf(t, text).Of(row)
		if why != nil || string(name) != want || archived {
			t.Errorf("%s: %s, %v, want %s", text, name, why, want)
		}
	}
}

func TestAValueThatMakesNoNameOfATableRejectsItsRow(t *testing.T) {
	n := namerOf(t, "{shop}_{month(at)}")
	for _, tt := range []struct {
		at, shop table.Value
		ok       bool
	}{
		{textValue("2024-03-31"), textValue("north"), true},
		{textValue("2024-03-31"), textValue("7eleven"), false},
		{textValue("2024-03-31"), textValue("no rth"), false},
		{textValue("2024-03-31"), table.Value{}, false},
		{table.Value{}, textValue("north"), false},
		{textValue("yesterday"), textValue("north"), false},
		{textValue("2024-03-31"), textValue("north"), true},
	} {
		name, _, why := n.Of([]table.Value{tt.at, {}, tt.shop})
		if (why == nil) != tt.ok || tt.ok && string(name) != "north_202403" || why != nil && why.Message == "" {
			t.Errorf("%s, %s: %s, %+v", tt.at.Bytes, tt.shop.Bytes, name, why)
		}
	}
}

func TestATemplateThatMakesNoSenseIsRefused(t *testing.T) {
	for _, text := range []string{"t_{", "t_}", "t_{}", "t_{month}", "t-{month(at)}", "t_{month(at)}}", "t_{{month(at)}", "ü{shop}"} {
		if tables, err := parseTables(text, nil); err == nil {
			t.Errorf("%s: %+v", text, tables.parts)
		}
	}
	for _, text := range []string{"t_{nobody}", "t_{month(at, 3)}", `t_{splice(auto, shop, shop)}`} {
		tables, err := parseTables(text, nil)
		must(t, err)
		p := &planner{plan: &Plan{Tables: tables, env: keyexpr.Env{Columns: []keyexpr.Input{{Name: "at", Type: table.String}, {Name: "shop", Type: table.String}}}}}
		conformance.Refused(t, p.compileTables(), "", "%s compiles", text)
	}
}

func TestATableIsCreatedWithThePolicysOptionsForItsAge(t *testing.T) {
	policy, err := lifecycle.Parse("p", []byte("period: month\nclasses:\n- {up_to: 1, reserved: {write: 9}}\n- {up_to: 3, ttl: 86400, max_versions: 3}\n- {archive: /old}\n"))
	must(t, err)
	period, err := lifecycle.ParseTemplate("t_{month(at)}")
	must(t, err)
	tables := &Tables{period: period, policy: policy, now: time.Date(2024, 6, 30, 0, 0, 0, 0, time.UTC)}
	asked := table.Definition{TimeToLive: -1, MaxVersions: 1, ReservedWrite: 1, ReservedRead: 2}
	for name, want := range map[string]table.Definition{
		"t_202407": {TimeToLive: -1, MaxVersions: 1, ReservedWrite: 9, ReservedRead: 2},
		"t_202405": {TimeToLive: -1, MaxVersions: 1, ReservedWrite: 9, ReservedRead: 2},
		"t_202404": {TimeToLive: 86400, MaxVersions: 3, ReservedWrite: 1, ReservedRead: 2},
	} {
		if got := tables.definition(name, asked); got != want || tables.Archive(name) != "" {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if tables.Archive("t_202402") != "/old" || tables.Class("t_202402") != 3 || tables.maxVersions(1) != 3 || !tables.Archives() {
		t.Errorf("t_202402: class %d, archive %q", tables.Class("t_202402"), tables.Archive("t_202402"))
	}
}

func TestTablesOfATemplateAreKnownByTheirNames(t *testing.T) {
	for _, tt := range []struct {
		text, name string
		want       bool
	}{
		{"t_{month(at)}", "t_202403", true}, {"t_{month(at)}", "t_20240", false}, {"{shop}_x", "north_x", true}, {"{shop}_x", "_x", false},
		{"a_{shop}_b_{n}_c", "a_1_b_2_c", true}, {"a_{shop}_b_{n}_c", "a_1_2_c", false}, {"a_{shop}", "b_1", false},
	} {
		tables, err := parseTables(tt.text, nil)
		must(t, err)
		if p, err := lifecycle.ParseTemplate(tt.text); err == nil {
			tables.period = p
		}
		conformance.Equal(t, tables.matches(tt.name), tt.want, "%s, %s", tt.text, tt.name)
	}
}

func TestPeriodsAreOfTheZoneOfThePolicy(t *testing.T) {
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	must(t, err)
	for _, c := range []struct{ text, want string }{
		{`t_{month(x)}`, `format_time(x, "200601", "Asia/Shanghai")`},
		{`t_{ year( x ) }`, `format_time( x , "2006", "Asia/Shanghai")`},
		{`t_{day(x, "ms")}`, `format_time(x, "20060102", "ms", "Asia/Shanghai")`},
		{`t_{day(x, "ms", "Asia/Shanghai")}`, `format_time(x, "20060102", "ms", "Asia/Shanghai")`},
		{`t_{month(replace(x, "a", "UTC"))}`, `format_time(replace(x, "a", "UTC"), "200601", "Asia/Shanghai")`},
	} {
		tables, err := parseTables(c.text, &lifecycle.Policy{Zone: shanghai})
		if err != nil || tables.parts[1].expr != c.want {
			t.Errorf("%s: %v, %+v", c.text, err, tables)
		}
	}
	policy := &lifecycle.Policy{Unit: lifecycle.Month, Zone: shanghai}
	for text, fits := range map[string]bool{
		`t_{month(x)}`: true, `t_{month}`: true, `t_{month(x, "Asia/Shanghai")}`: true, `t_{month(x, "s")}`: true,
		`t_{month(x, "UTC")}`: false, `t_{month(x, "s", "UTC")}`: false, `t_{month(x, 'UTC', "ms")}`: false,
	} {
		template, err := lifecycle.ParseTemplate(text)
		must(t, err)
		conformance.Equal(t, (policy.Fits(template) == nil), fits, "%s", text)
	}
}
