package options

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
)

var must = conformance.Must

// Of the options of a request, each has a field, and each default is a value that means what a zero field does.
func TestAZeroRequestHasTheDefaultsOfItsOptions(t *testing.T) {
	r, err := Request{}.withDefaults()
	must(t, err)
	for _, o := range everyOption {
		if o.InRequest() && o.Default != "" && r.IsSet(o.Name) == o.ByDialect {
			t.Errorf("%s is set: %v, want %v", o.Name, o.ByDialect, !o.ByDialect)
		}
	}
}

func TestWhatAZeroFieldWouldSayOtherwiseIsRefused(t *testing.T) {
	for name, given := range map[string]string{
		"mode": "", "concurrency": "0", "retry-for": "0s", "batch-bytes": "0", "ttl": "0", "max-errors": "", "delimiter": "", "when": "",
		"returned-keys": "", "memory": "0",
	} {
		r := new(Command)
		if err := Find(name).Set(r, []string{given}); err == nil || !strings.HasPrefix(err.Error(), "--"+name) {
			t.Errorf("--%s %q: %v", name, given, err)
		}
	}
	r := new(Command)
	for name, given := range map[string]string{"quote": "", "columns": "", "settle": "0s", "max-wcu": "0", "create": "false"} {
		conformance.Equal(t, Find(name).Set(r, []string{given}), nil, "%s=%s", name, given)
	}
	if r.Quote != "none" || r.Columns == nil {
		t.Errorf("%+v", r)
	}
}

// A machine that is handed a request does what was asked for, and is told no secret.
func TestARequestIsTheSameAfterItWasWritten(t *testing.T) {
	var r Command
	values := map[Kind]string{Plain: "text", Switch: "true", Whole: "7", Number: "2.5", Size: "3MiB", Duration: "90s", Texts: "a", List: `a,"b,c"`, Lists: "d", Renamings: `"x=y"=z`, Typings: "a=integer"}
	for _, o := range everyOption {
		value := values[o.Kind]
		if byName[o.Name].Values != nil {
			value = byName[o.Name].Values[0]
		}
		if o == byName[o.Name] { // others of the name have the same field
			must(t, o.Set(&r, []string{value}))
		}
		if o == byName[o.Name] && !r.IsSet(o.Name) {
			t.Errorf("%s is not set", o.Name)
		}
	}
	r.AccessKeyID, r.AccessKeySecret, r.SecurityToken = "who", "secret", "secret"
	text, err := json.Marshal(r)
	if err != nil || strings.Contains(string(text), "secret") {
		t.Fatalf("%v: %s", err, text)
	}
	again, err := ReadCommand(text)
	must(t, err)
	r.AccessKeyID, r.AccessKeySecret, r.SecurityToken = "", "", ""
	if !reflect.DeepEqual(*again, r) || again.RetryFor != 90*time.Second || again.Rename["x=y"] != "z" {
		t.Errorf("%+v\nwas\n%+v", again, r)
	}
}
