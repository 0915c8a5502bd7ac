package lifecycle

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"example.com/tsimport/internal/conformance"
)

const schemaFile = "../../docs/age-policy.schema.json"

// schema is a JSON schema, as far as the policy's needs it: an object of keywords, or whether anything is valid.
type schema any

func readSchema(t *testing.T) schema {
	t.Helper()
	text, err := os.ReadFile(schemaFile)
	must(t, err)
	var s schema
	must(t, json.Unmarshal(text, &s))
	return s
}

// judge validates values by a schema; it knows the keywords below and fails the test on any other.
type judge struct {
	t    *testing.T
	root map[string]any
}

func (j judge) valid(s schema, v any) bool {
	j.t.Helper()
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
		return map[string]bool{"object": isObject, "array": isList, "string": isText, "integer": isNumber && number == math.Trunc(number)}[arg.(string)]
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
		return !isObject || !slices.ContainsFunc(arg.([]any), func(name any) bool { _, there := object[name.(string)]; return !there })
	case "not":
		return !j.valid(arg, v)
	case "anyOf":
		return slices.ContainsFunc(arg.([]any), func(s any) bool { return j.valid(s, v) })
	case "$ref":
		name, ok := strings.CutPrefix(arg.(string), "#/$defs/")
		if !ok {
			j.t.Fatalf("$ref %v is not understood here", arg)
		}
		return j.valid(j.root["$defs"].(map[string]any)[name], v)
	case "additionalProperties", "properties", "dependentSchemas":
		known, _ := s["properties"].(map[string]any)
		for name, value := range object {
			schemas, _ := arg.(map[string]any) // additionalProperties has one
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
	case "prefixItems", "items": // items is for all of a list, so the schema's prefix must not contradict it: it does not
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

// bySchema is the schema's verdict on a policy.
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
	must(t, json.Unmarshal(asJSON, &v))
	return judge{t, root.(map[string]any)}.valid(root, v)
}

func TestTheExamplesAreValidPolicies(t *testing.T) {
	texts := map[string]string{"the test's own": example}
	text, err := os.ReadFile("../../examples/age-policy.yaml")
	must(t, err)
	texts["examples/age-policy.yaml"] = string(text)
	guide, err := os.ReadFile("../../docs/age.md")
	must(t, err)
	for i, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(guide, -1) {
		texts[fmt.Sprintf("docs/age.md, example %d", i+1)] = string(block[1])
	}
	if len(texts) < 4 {
		t.Errorf("only %d examples are found", len(texts))
	}
	for where, text := range texts {
		if _, err := Parse(where, []byte(text)); err != nil {
			t.Error(err)
		}
		if !bySchema(t, text) {
			t.Errorf("%s is not valid by the schema", where)
		}
	}
}

func TestTheSchemaNamesTheFieldsThatAreRead(t *testing.T) {
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
		if !slices.Equal(named, v.fields) || !slices.Equal(required, v.required) || v.schema["additionalProperties"] != false {
			t.Errorf("%s: the schema has %v (%v required), read are %v (%v)", v.what, named, required, v.fields, v.required)
		}
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

// TestTheSchemaJudgesAsParseDoes tries a policy with each of many values in each of its places.
func TestTheSchemaJudgesAsParseDoes(t *testing.T) {
	values := []string{"month", "day", "year", "week", "''", "UTC", "Asia/Shanghai", "0", "1", "-1", "-2", "1.5", "86399", "86400", "100000", "100001", "1000000",
		"1000001", "2147483647", "2147483648", "true", "null", "[]", "{}", "[1]", "{a: 1}", "{read: 1}", "{write: 0}", "{read: -1}", "{read: x}", "{read: 1, write: 2, more: 3}", "'1'"}
	places := []string{"period: %s\nclasses: [{}]", "period: month\nzone: %s\nclasses: [{}]", "period: month\nclasses: %s", "period: month\nclasses: [%s]",
		"period: month\nclasses: [{up_to: %s}, {}]", "period: month\nclasses: [{reserved: %s}]", "period: month\nclasses: [{ttl: %s}]",
		"period: month\nclasses: [{max_versions: %s}]", "period: month\nclasses: [{up_to: 1}, {archive: %s}]", "period: month\nclasses: [{more: %s}]",
		"period: month\nmore: %s\nclasses: [{}]", "%s", "period: month\nclasses: [{up_to: 1}, {archive: a, ttl: %s}]", "period: month\nclasses: [{archive: %s}]"}
	verdicts := map[bool]int{}
	for _, place := range places {
		for _, value := range values {
			text := fmt.Sprintf(place, value)
			_, err := Parse("p", []byte(text))
			valid := bySchema(t, text)
			if strings.Contains(place, "zone") && valid && err != nil && strings.Contains(err.Error(), "is not known") {
				continue // a schema does not know the zones
			}
			conformance.Equal(t, valid, err == nil, "%q: valid by the schema; the policy is read with %v", text, err)
			verdicts[valid]++
		}
	}
	if verdicts[true] < 20 || verdicts[false] < 200 {
		t.Errorf("verdicts %v", verdicts)
	}
}

// The class of the present is the one that is written and read most.
func TestTheExamplesReserveMostForThePresent(t *testing.T) {
	text, err := os.ReadFile("../../examples/age-policy.yaml")
	must(t, err)
	classes := parsed(t, string(text)).Classes
	hot := classes[0]
	if hot.From != 0 || hot.UpTo != 0 || hot.Read == nil || hot.Write == nil || *hot.Read < 1000 || *hot.Write < 1000 {
		t.Fatalf("the class of this period: %+v", hot)
	}
	for _, c := range classes[1:] {
		if c.Read != nil && *c.Read > *hot.Read || c.Write != nil && *c.Write >= *hot.Write {
			t.Errorf("class %d has more than the present: %+v", c.Number, c)
		}
	}
}
