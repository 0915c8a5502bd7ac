package lifecycle

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	"example.com/tsimport/internal/conformance"
)

const example = `period: month        # month|day|year
zone: Asia/Shanghai
classes:
  - {up_to: 1, reserved: {read: 0, write: 5000}, ttl: -1, max_versions: 1}
  - {up_to: 12, reserved: {read: 2000, write: 100}}
  - {up_to: 24, reserved: {read: 10, write: 10}}
  - {archive: ./archive}
`

func parsed(t *testing.T, text string) *Policy {
	t.Helper()
	return conformance.Try(Parse("policy.yaml", []byte(text))).Must(t)
}

func TestPolicyIsRead(t *testing.T) {
	zone := conformance.Try(time.LoadLocation("Asia/Shanghai")).Must(t)
	want := &Policy{Unit: Month, Zone: zone, Classes: []Class{
		{Number: 1, UpTo: 1, Read: new(0), Write: new(5000), TTL: new(-1), MaxVersions: new(1)},
		{Number: 2, From: 2, UpTo: 12, Read: new(2000), Write: new(100)},
		{Number: 3, From: 13, UpTo: 24, Read: new(10), Write: new(10)},
		{Number: 4, From: 25, UpTo: Unbounded, Archive: "./archive"},
	}}
	same := cmp.Comparer(func(a, b *time.Location) bool { return a.String() == b.String() })
	conformance.Equal(t, cmp.Diff(want, parsed(t, example), same), "", "(-want +got)")
	least := parsed(t, "period: day\nclasses: [{}]")
	diff := cmp.Diff(&Policy{Unit: Day, Zone: time.UTC, Classes: []Class{{Number: 1, UpTo: Unbounded}}}, least, same)
	conformance.True(t, diff == "", "(-want +got):\n%s", diff)
}

func TestClassOfPeriod(t *testing.T) {
	p := parsed(t, example)
	for _, tt := range []struct {
		period, now string
		age, class  int
	}{
		{"202403", "2024-03-15T00:00:00Z", 0, 1},
		{"202404", "2024-03-15T00:00:00Z", -1, 1}, // the period has not begun
		{"299901", "2024-03-15T00:00:00Z", -11698, 1},
		{"202402", "2024-03-31T15:59:59Z", 1, 1}, // the month ends eight hours earlier in Shanghai
		{"202402", "2024-03-31T16:00:00Z", 2, 2},
		{"202303", "2024-03-15T00:00:00Z", 12, 2},
		{"202302", "2024-03-15T00:00:00Z", 13, 3},
		{"202203", "2024-03-15T00:00:00Z", 24, 3},
		{"202202", "2024-03-15T00:00:00Z", 25, 4},
		{"000001", "2024-03-15T00:00:00Z", 24290, 4},
	} {
		period := conformance.Try(parseTableName("c{month}", "c"+tt.period)).Must(t)
		now := at(t, tt.now)
		age, class := p.Age(period, now), p.ClassOf(period, now)
		conformance.True(t, age == tt.age && class.Number == tt.class, "%+v: age %d, class %d", tt, age, class.Number)
	}
}

func TestAgesInDaysFollowCalendar(t *testing.T) {
	p := parsed(t, "period: day\nzone: Europe/Berlin\nclasses: [{up_to: 0}, {up_to: 1}, {}]")
	period := conformance.Try(parseTableName("c{day}", "c20240330")).Must(t)
	for now, age := range map[string]int{ // the night of 31 March has 23 hours
		"2024-03-29T22:59:59Z": -1, "2024-03-29T23:00:00Z": 0, "2024-03-30T22:59:59Z": 0, "2024-03-30T23:00:00Z": 1,
		"2024-03-31T21:59:59Z": 1, "2024-03-31T22:00:00Z": 2, "2025-03-30T12:00:00Z": 365,
	} {
		conformance.Equal(t, p.Age(period, at(t, now)), age, "at %s: age", now)
	}
}

func TestFinerPeriodHasAgeOfEnclosingPeriod(t *testing.T) {
	day := conformance.Try(parseTableName("c{day}", "c20240229")).Must(t)
	conformance.Equal(t, parsed(t, "period: month\nclasses: [{}]").Age(day, at(t, "2024-03-01T00:00:00Z")), 1, "age")
}

func TestClassNamesItsAges(t *testing.T) {
	p := parsed(t, "period: year\nclasses: [{up_to: 0}, {up_to: 3}, {}]")
	for i, want := range []string{"0", "1–3", "4 and older"} {
		conformance.Equal(t, p.Classes[i].Ages(), want, "class %d", i+1)
	}
}

func TestPolicyFitsTablesOfSamePeriod(t *testing.T) {
	p := parsed(t, example)
	for template, fits := range map[string]bool{"c{month}": true, "c{day}": false, "c{year}": false} {
		conformance.Equal(t, (p.Fits(conformance.Try(ParseTemplate(template)).Must(t)) == nil), fits, "%s", template)
	}
}

func TestInvalidPolicyIsRefusedWithLine(t *testing.T) {
	const in = "period: month\nclasses:\n  - "
	for _, tt := range []struct{ text, want string }{
		{"", "empty"},
		{"# nothing", "empty"},
		{"period: month\nclasses: [}", "line 2: not YAML"},
		{"\tperiod: month", "line 1: not YAML"},
		{"- a", "line 1: want the fields of a policy"},
		{"period: month", "line 1: a policy lacks classes"},
		{"classes: [{}]", "line 1: a policy lacks period"},
		{"period: week\nclasses: [{}]", `line 1: "week" is not a period; want month, day or year`},
		{"period: [month]\nclasses: [{}]", "line 1: want a period"},
		{"period: 7\nclasses: [{}]", `line 1: "7": want a period as a string`},
		{"period: month\nclasses: [{}]\nperiod: day", "line 3: period appears twice, first on line 1"},
		{"period: month\nclases: [{}]", `line 2: unknown field "clases" of a policy; there are period, zone, classes`},
		{"period: month\n? [a]\n: b", "line 2: want the name of a field"},
		{"period: month\nzone: Nowhere/City\nclasses: [{}]", `line 2: zone "Nowhere/City" is not known`},
		{"period: month\nzone: Local\nclasses: [{}]", "line 2: zone"},
		{"period: month\nzone: ''\nclasses: [{}]", "line 2: zone"},
		{"period: month\nzone:\nclasses: [{}]", "line 2:"},
		{"period: month\nclasses: {}", "line 2: want a list of classes"},
		{"period: month\nclasses: []", "line 2: no classes"},
		{"period: month\nclasses:\n  -", "want the fields of a class"},
		{in + "{up_too: 1}",
			`line 3: unknown field "up_too" of a class; there are up_to, reserved, ttl, max_versions, archive, drop`},
		{in + "{up_to: 1}", "line 3: the last class must cover all older periods"},
		{in + "{}\n  - {}", "line 3: class 1 lacks up_to"},
		{in + "{up_to: 1}\n  - {up_to: 1}\n  - {}", "line 4: up_to 1 of class 2: want 2 or more"},
		{in + "{up_to: -1}\n  - {}", "line 3: -1: want an age from 0"},
		{in + "{up_to: 1.5}\n  - {}", `line 3: "1.5": want an age as a whole number`},
		{in + "{up_to: '1'}\n  - {}", `line 3: "1": want an age as a whole number`},
		{in + "{up_to: 010}\n  - {}", `line 3: "010"`},
		{in + "{up_to: 0x10}\n  - {}", `line 3: "0x10"`},
		{in + "{up_to: 1_0}\n  - {}", `line 3: "1_0"`},
		{in + "{up_to: +1}\n  - {}", `line 3: "+1"`},
		{in + "{up_to: 99999999999999999999}\n  - {}", "line 3: "},
		{in + "{up_to:}\n  - {}", "line 3:"},
		{in + "{up_to: 1, archive: a}\n  - {}", "line 3: class 1 archives and is not the last"},
		{in + "{archive: a}", "line 3: the first class archives"},
		{in + "{up_to: 1}\n  - {archive: ''}", "line 4: archive is empty"},
		{in + "{up_to: 1}\n  - {archive: 'https://b/x'}", `line 4: archive "https://b/x" is an address of another kind`},
		{in + "{up_to: 1}\n  - {archive: 'oss:/bucket/x'}", "line 4: archive"},
		{in + "{up_to: 1}\n  - {archive: a, drop: true}", "line 4: class 2 has archive and drop"},
		{in + "{up_to: 1}\n  - {drop: false}", `line 4: drop "false": want true`},
		{in + "{up_to: 1}\n  - {drop: 'true'}", `line 4: drop "true": want true`},
		{in + "{up_to: 1, drop: true}\n  - {}", "line 3: class 1 drops and is not the last"},
		{in + "{drop: true}", "line 3: the first class drops"},
		{in + "{up_to: 1}\n  - {drop: true, ttl: -1}", "line 4: class 2 drops, so it has no tables"},
		{in + "{up_to: 1}\n  - {archive: 'file:///x'}", "line 4: archive"},
		{in + "{up_to: 1}\n  - {archive: a, ttl: -1}", "line 4: class 2 archives, so it has no tables"},
		{in + "{ttl: 86399}", "line 3: ttl 86399: want -1 (never expires) or 86400 seconds"},
		{in + "{ttl: 0}", "line 3: ttl 0"},
		{in + "{ttl: 2147483648}", "line 3: 2147483648"},
		{in + "{max_versions: 0}", "line 3: 0: want a number of versions from 1"},
		{in + "{reserved: 7}", "line 3: want the fields of reserved throughput"},
		{in + "{reserved: {write: 100001}}", "line 3: 100001: want a number of capacity units from 0 to 100000"},
		{in + "{reserved: {reads: 1}}", `line 3: unknown field "reads" of reserved throughput; there are read, write`},
		{"period: month\nclasses:\n  - &a {ttl: -1}", "line 3: anchors and aliases"},
		{"period: &p month\nclasses: [{max_versions: *p}]", "anchors and aliases"},
		{"period: month\nclasses: [{}]\n---\nperiod: day", "a second document"},
		{"period: month\nclasses: [{}]\n---\n}", "not YAML"},
		{strings.Repeat("#", maxPolicyBytes+1), "larger than 1048576 bytes"},
	} {
		err := conformance.ErrorOf(Parse("policy.yaml", []byte(tt.text)))
		conformance.InALine(t, err, tt.want, "%.100q", tt.text)
		conformance.True(t, strings.HasPrefix(fmt.Sprint(err), "policy policy.yaml"), "%v", err)
	}
}

func TestArchiveIsRelativeToPolicyFile(t *testing.T) {
	dir := t.TempDir()
	for folder, want := range map[string]string{"./old": filepath.Join(dir, "old"), "/mnt/old": "/mnt/old"} {
		file := filepath.Join(dir, "policy.yaml")
		conformance.Must(t, os.WriteFile(file, []byte("period: month\nclasses: [{up_to: 1}, {archive: "+folder+"}]"), 0o600))
		p, err := Read(file)
		conformance.True(t, err == nil && p.Classes[1].Archive == want, "%s: %+v, %v", folder, p, err)
	}
	conformance.Refused(t, conformance.ErrorOf(Read(filepath.Join(dir, "none.yaml"))), "none.yaml", "a missing file")
	conformance.Refused(t, conformance.ErrorOf(Read(dir)), "", "a folder is read as a policy")
}

func FuzzPolicyIsReadOrRefused(f *testing.F) {
	f.Add(example)
	f.Add("period: month\nclasses: [{up_to: 1, <<: *a}, {archive: &a b}]")
	f.Add("? {}\n: !!int 'x'")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse("p", []byte(text))
		if err != nil {
			conformance.True(t, !strings.ContainsAny(err.Error(), "\n"), "%q", err)
			return
		}
		next := 0
		for i := range p.Classes {
			c := p.Classes[i]
			conformance.True(t, c.From == next && c.UpTo >= c.From, "class %d: ages %d to %d, want from %d", i, c.From,
				c.UpTo, next)
			next = c.UpTo + 1
		}
		conformance.True(t, p.Classes[len(p.Classes)-1].UpTo == Unbounded && p.Zone != nil, "%+v", p)
	})
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	return conformance.Try(time.Parse(time.RFC3339, text)).Must(t)
}

func TestPeriodNameRoundTrip(t *testing.T) {
	for _, tt := range []struct{ template, now, name string }{
		{"consume_{month}", "2024-03-31T23:59:59Z", "consume_202403"},
		{"consume_{month(OrderTime)}", "2024-03-31T23:59:59Z", "consume_202403"},
		{`consume_{ month(OrderTime, "}") }`, "2024-12-01T00:00:00Z", "consume_202412"},
		{"t{year}_rows", "0007-01-01T00:00:00Z", "t0007_rows"},
		{"_{day}", "2024-02-29T12:00:00Z", "_20240229"},
		{"t1{day}", "0000-01-01T00:00:00Z", "t100000101"},
	} {
		template := conformance.Try(ParseTemplate(tt.template)).Must(t)
		p := template.Unit.at(at(t, tt.now))
		conformance.Equal(t, template.Name(p), tt.name, "%s at %s", tt.template, tt.now)
		back, err := parseTableName(tt.template, tt.name)
		conformance.True(t, err == nil && back == p, "%s: %s reads as %s, %v", tt.template, tt.name, back, err)
	}
}

func TestPeriodNamesAreUnique(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		template := &Template{Unit: Unit(rapid.IntRange(int(Year), int(Day)).Draw(t, "unit")), prefix: "c_",
			suffix: rapid.SampledFrom([]string{"", "_x", "7"}).Draw(t, "suffix")}
		first, last := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).Unix()-1
		moment := time.Unix(rapid.Int64Range(first, last).Draw(t, "time"), 0).UTC()
		p := template.Unit.at(moment)
		back, ok := template.Period(template.Name(p))
		conformance.MustTrue(t, ok && back == p, "%s reads as %s, %v", template.Name(p), back, ok)
		start, next := p.Start(time.UTC), Period{p.Unit, p.index + 1}.Start(time.UTC)
		conformance.MustTrue(t, !moment.Before(start) && moment.Before(next), "%v is not in %s of %v", moment, p, start)
	})
}

func TestForeignNamesHaveNoPeriod(t *testing.T) {
	for template, names := range map[string][]string{
		"consume_{month}": {"consume_2024", "consume_20240301", "consume_202413", "consume_202400", "consume_2024-3",
			"consume_ 20243", "consume_+20243",
			"consume_２０２４", "consume_", "consume", "Consume_202403", "consume_202403_old", "xconsume_202403", "consume_aaaaaa"},
		"t{day}_x": {"t20230229_x", "t20240132_x", "t2024030_x", "t20240301x", "t20240301_xx"},
		"a{year}a": {"aa", "a", "a202a", "a20240a"},
	} {
		for _, name := range names {
			p, err := parseTableName(template, name)
			conformance.True(t, err != nil, "%s: %s is mistaken for %s", template, name, p)
		}
	}
}

func TestTemplatesAreChecked(t *testing.T) {
	for _, text := range []string{
		"", "consume", "consume_{}", "consume_{week}", "consume_{month", "consume_month}", "{month}", "a{month}{day}",
		"a}{month}", "a{month(x}", "a-{month}", "consume_{month}.old", "a{{month}}", `a{month("}`,
	} {
		got, err := ParseTemplate(text)
		conformance.True(t, err != nil, "%q is mistaken for %s", text, got)
	}
}

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

func TestChangeListsDifferingSettings(t *testing.T) {
	p := parsed(t, `period: month
classes:
  - {up_to: 0, reserved: {read: 0, write: 5000}, ttl: -1, max_versions: 1}
  - {up_to: 1, reserved: {write: 7}}
  - {up_to: 2, ttl: 86400}
  - {up_to: 3, max_versions: 2}
  - {archive: old}`)
	for _, tt := range []struct {
		month                                string
		have                                 Table
		want                                 string
		reserves, options, shortens, expired bool
	}{
		{"202405", Table{"c", 0, 5000, -1, 1}, "[]", false, false, false, false},
		{"202406", Table{"c", 3, 0, 86400, 2},
			"[{reserved.read 3 0} {reserved.write 0 5000} {ttl 86400 -1} {max_versions 2 1}]", true, true, true, false},
		{"202404", Table{"c", 3, 5, 86400, 2}, "[{reserved.write 5 7}]", true, false, false, false},
		{"202403", Table{"c", 3, 5, -1, 2}, "[{ttl -1 86400}]", false, true, true, false},
		{"202403", Table{"c", 3, 5, 86401, 2}, "[{ttl 86401 86400}]", false, true, true, false},
		{"202403", Table{"c", 3, 5, 3600, 2}, "[{ttl 3600 86400}]", false, true, false, false},
		{"202402", Table{"c", 3, 5, -1, 1}, "[{max_versions 1 2}]", false, true, false, false},
		{"202401", Table{"c", 3, 5, -1, 9}, "[]", false, false, false, true},
	} {
		period := conformance.Try(parseTableName("c{month}", "c"+tt.month)).Must(t)
		c := p.Change(period, tt.have, at(t, "2024-05-15T00:00:00Z"))
		got := fmt.Sprintln(c.Settings(), c.Reserves(), c.Options(), c.Shortens(), c.Expired())
		want := fmt.Sprintln(tt.want, tt.reserves, tt.options, tt.shortens, tt.expired)
		conformance.Equal(t, got, want, "%s %+v: settings, reserves, options, shortens, expired", tt.month, tt.have)
	}
}

func TestMatchingFindsTablesOfTemplate(t *testing.T) {
	template := conformance.Try(ParseTemplate("c_{month}")).Must(t)
	tables, others := template.Matching([]string{"c_202402", "other", "c_old", "c_202312", "c_202313", "c_000001", "c"})
	conformance.Equal(t, fmt.Sprint(tables, others), "[c_000001 c_202312 c_202402] [c_202313 c_old]", "tables and others")
}

const schemaFile = "../../docs/age-policy.schema.json"

// schema is a JSON schema, an object or a boolean, limited to the keywords that the policy's schema uses.
type schema any

func readSchema(t *testing.T) schema {
	t.Helper()
	text := conformance.Try(os.ReadFile(schemaFile)).Must(t)
	var s schema
	conformance.Must(t, json.Unmarshal(text, &s))
	return s
}

// judge validates values against a schema. An unknown keyword in the schema fails the test.
type judge struct {
	t    *testing.T
	root map[string]any
}

func (j judge) valid(s schema, v any) bool {
	if whether, ok := s.(bool); ok {
		return whether
	}
	for keyword, arg := range s.(map[string]any) {
		if !j.keyword(keyword, arg, s.(map[string]any), v) {
			return false
		}
	}
	return true
}

func (j judge) keyword(keyword string, arg any, s map[string]any, v any) bool {
	object, isObject := v.(map[string]any)
	list, isList := v.([]any)
	text, isText := v.(string)
	number, isNumber := v.(float64)
	switch keyword {
	case "$schema", "$comment", "$defs", "title", "description":
		return true
	case "type":
		return map[string]bool{"object": isObject, "array": isList, "string": isText, "integer": isNumber &&
			number == math.Trunc(number)}[arg.(string)]
	case "enum":
		return slices.Contains(arg.([]any), v)
	case "const":
		return arg == v
	case "minimum":
		return !isNumber || number >= arg.(float64)
	case "maximum":
		return !isNumber || number <= arg.(float64)
	case "minLength":
		return !isText || utf8.RuneCountInString(text) >= int(arg.(float64))
	case "minItems":
		return !isList || len(list) >= int(arg.(float64))
	case "required":
		return !isObject || !slices.ContainsFunc(arg.([]any), func(n any) bool { _, is := object[n.(string)]; return !is })
	case "not":
		return !j.valid(arg, v)
	case "anyOf":
		return slices.ContainsFunc(arg.([]any), func(s any) bool { return j.valid(s, v) })
	case "$ref":
		name, ok := strings.CutPrefix(arg.(string), "#/$defs/")
		conformance.MustTrue(j.t, ok, "$ref %v is not understood here", arg)
		return j.valid(j.root["$defs"].(map[string]any)[name], v)
	case "additionalProperties", "properties", "dependentSchemas":
		known, _ := s["properties"].(map[string]any)
		for name, value := range object {
			schemas, _ := arg.(map[string]any) // nil for additionalProperties, which has a single schema
			of, names := schemas[name]
			switch keyword {
			case "additionalProperties":
				_, is := known[name]
				of, names = arg, !is
			case "dependentSchemas":
				value = v
			}
			if names && !j.valid(of, value) {
				return false
			}
		}
		return true
	case "prefixItems", "items": // items applies to the whole list here, with which the schema's prefixItems agree
		prefix, isPrefix := arg.([]any)
		for i, value := range list {
			of := arg
			if isPrefix && i >= len(prefix) {
				break
			} else if isPrefix {
				of = prefix[i]
			}
			if !j.valid(of, value) {
				return false
			}
		}
		return true
	}
	j.t.Fatalf("keyword %s is not understood here", keyword)
	return false
}

func bySchema(t *testing.T, text string) bool {
	t.Helper()
	root := readSchema(t)
	var loose any
	if err := yaml.Unmarshal([]byte(text), &loose); err != nil {
		return false
	}
	asJSON, err := json.Marshal(loose)
	if err != nil {
		return false
	}
	var v any
	conformance.Must(t, json.Unmarshal(asJSON, &v))
	return judge{t, root.(map[string]any)}.valid(root, v)
}

func TestExamplesAreValidPolicies(t *testing.T) {
	texts := map[string]string{"the test's own": example}
	text := conformance.Read(t, "../../examples", "age-policy.yaml")
	texts["examples/age-policy.yaml"] = string(text)
	guide := conformance.Read(t, "../../docs", "age.md")
	for i, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(guide, -1) {
		texts[fmt.Sprintf("docs/age.md, example %d", i+1)] = string(block[1])
	}
	conformance.True(t, len(texts) >= 4, "only %d examples are found", len(texts))
	for where, text := range texts {
		conformance.Must(t, conformance.ErrorOf(Parse(where, []byte(text))))
		conformance.Equal(t, bySchema(t, text), true, "%s is not valid by the schema", where)
	}
}

func TestSchemaHasAllFields(t *testing.T) {
	root := readSchema(t).(map[string]any)
	class := root["$defs"].(map[string]any)["class"].(map[string]any)
	reserved := class["properties"].(map[string]any)["reserved"].(map[string]any)
	for _, v := range []struct {
		what             string
		schema           map[string]any
		fields, required []string
	}{
		{"a policy", root, namesOf(policyFields(), false), namesOf(policyFields(), true)},
		{"a class", class, namesOf(classFields(), false), namesOf(classFields(), true)},
		{"reserved throughput", reserved, namesOf(reservedFields(), false), namesOf(reservedFields(), true)},
	} {
		named := slices.Sorted(maps.Keys(v.schema["properties"].(map[string]any)))
		var required []string
		list, _ := v.schema["required"].([]any)
		for _, name := range list {
			required = append(required, name.(string))
		}
		slices.Sort(required)
		conformance.True(t, slices.Equal(named, v.fields) && slices.Equal(required, v.required) &&
			v.schema["additionalProperties"] == false,
			"%s: the schema has %v (%v required), read are %v (%v)", v.what, named, required, v.fields, v.required)
	}
}

func namesOf[T any](fields []field[T], required bool) (names []string) {
	for _, f := range fields {
		if f.required || !required {
			names = append(names, f.name)
		}
	}
	slices.Sort(names)
	return names
}

// TestSchemaAgreesWithParse puts each of many values in each place of a policy.
func TestSchemaAgreesWithParse(t *testing.T) {
	values := []string{"month", "day", "year", "week", "''", "UTC", "Asia/Shanghai", "0", "1", "-1", "-2", "1.5", "86399",
		"86400", "100000", "100001", "1000000", "1000001", "2147483647", "2147483648", "true", "null", "[]", "{}", "[1]",
		"{a: 1}", "{read: 1}", "{write: 0}", "{read: -1}", "{read: x}", "{read: 1, write: 2, more: 3}", "'1'"}
	places := []string{"period: %s\nclasses: [{}]", "period: month\nzone: %s\nclasses: [{}]", "period: month\nclasses: %s",
		"period: month\nclasses: [%s]", "period: month\nclasses: [{up_to: %s}, {}]",
		"period: month\nclasses: [{reserved: %s}]", "period: month\nclasses: [{ttl: %s}]",
		"period: month\nclasses: [{max_versions: %s}]", "period: month\nclasses: [{up_to: 1}, {archive: %s}]",
		"period: month\nclasses: [{more: %s}]", "period: month\nmore: %s\nclasses: [{}]", "%s",
		"period: month\nclasses: [{up_to: 1}, {archive: a, ttl: %s}]", "period: month\nclasses: [{archive: %s}]",
		"period: month\nclasses: [{up_to: 1}, {drop: %s}]", "period: month\nclasses: [{up_to: 1}, {drop: true, ttl: %s}]",
		"period: month\nclasses: [{drop: %s}]", "period: month\nclasses: [{up_to: 1}, {drop: true, archive: %s}]"}
	verdicts := map[bool]int{}
	for _, place := range places {
		for _, value := range values {
			text := fmt.Sprintf(place, value)
			_, err := Parse("p", []byte(text))
			valid := bySchema(t, text)
			if strings.Contains(place, "zone") && valid && err != nil && strings.Contains(err.Error(), "is not known") {
				continue // the schema cannot list all zones
			}
			conformance.Equal(t, valid, err == nil, "%q: valid by the schema; the policy is read with %v", text, err)
			verdicts[valid]++
		}
	}
	conformance.True(t, verdicts[true] >= 20 && verdicts[false] >= 200, "verdicts %v", verdicts)
}

// The table of the current period is written and read most.
func TestExamplesReserveMostForCurrentPeriod(t *testing.T) {
	classes := parsed(t, string(conformance.Read(t, "../../examples", "age-policy.yaml"))).Classes
	hot := classes[0]
	conformance.MustTrue(t, hot.From == 0 && hot.UpTo == 0 && hot.Read != nil && hot.Write != nil && *hot.Read >= 1000 &&
		*hot.Write >= 1000, "the class of this period: %+v", hot)
	for _, c := range classes[1:] {
		conformance.True(t, (c.Read == nil || *c.Read <= *hot.Read) && (c.Write == nil || *c.Write < *hot.Write),
			"class %d has more than the present: %+v", c.Number, c)
	}
}
