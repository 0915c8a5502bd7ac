package pipeline

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files of these tests")

// fillFields gives every exported field below v that JSON shows a value of its own, in the order of the fields.
func fillFields(v reflect.Value, n *int) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		*n++
		v.Set(reflect.ValueOf(time.Unix(int64(*n), 0).UTC()))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.IsExported() && f.Tag.Get("json") != "-" {
				fillFields(v.Field(i), n)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillFields(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillFields(v.Index(0), n)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"name": "text"}))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String, reflect.Interface:
		*n++
		v.Set(reflect.ValueOf(fmt.Sprintf("text %d", *n)))
	case reflect.Int, reflect.Int64:
		*n++
		v.SetInt(int64(*n))
	case reflect.Uint8: // of bytes, as text
		v.SetUint(1)
	case reflect.Uint64:
		*n++
		v.SetUint(uint64(*n))
	case reflect.Float64:
		*n++
		v.SetFloat(float64(*n) + .5)
	default:
		panic(v.Type())
	}
}

// Programs read summary.json and the state of a running load: names, order and what is left out when it is empty stay.
func TestTheJSONOfReportsAndStatesStays(t *testing.T) {
	for name, v := range map[string]any{"report": new(Report), "state": new(State)} {
		for _, full := range []bool{false, true} {
			file := filepath.Join("testdata", name+"-empty.json")
			if full {
				file = filepath.Join("testdata", name+"-full.json")
				fillFields(reflect.ValueOf(v).Elem(), new(int))
			}
			got, err := json.MarshalIndent(v, "", "  ")
			must(t, err)
			got = append(got, '\n')
			if *update {
				must(t, os.WriteFile(file, got, 0o644))
			}
			want, err := os.ReadFile(file)
			must(t, err)
			if !bytes.Equal(got, want) {
				t.Errorf("%s: got\n%s", file, got)
			}
			again := reflect.New(reflect.TypeOf(v).Elem())
			must(t, json.Unmarshal(want, again.Interface()))
			if text, err := json.MarshalIndent(again.Interface(), "", "  "); err != nil || !bytes.Equal(append(text, '\n'), want) {
				t.Errorf("%s: read and written again it is\n%s", file, text)
			}
		}
	}
}
