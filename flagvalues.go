package tsimport

import (
	"encoding/csv"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"tsimport/pipeline/options"
)

// given are options by the names of the flags of the command, as their texts, numbers and so on.
type given map[string]any

// givenBy returns the fields of a pointer to a struct of options that are not zero. The field MaxWCU is the flag max-wcu.
func givenBy(o any) given {
	g := given{}
	fields := reflect.ValueOf(o).Elem()
	for i := range fields.NumField() {
		if f := fields.Field(i); !f.IsZero() {
			g[options.FlagName(fields.Type().Field(i).Name)] = f.Interface()
		}
	}
	return g
}

// IsSet reports whether the option was given.
func (g given) IsSet(name string) bool { return g[name] != nil }

// value returns what was given, or the default.
func value[T any](g given, name string) (v T) {
	v, ok := g[name].(T)
	if !ok && !g.IsSet(name) {
		v, _ = options.Defaults[name].(T)
	}
	return v
}

func (g given) Bool(name string) bool { return value[bool](g, name) }

func (g given) Int(name string) int { return value[int](g, name) }

func (g given) Int64(name string) int64 { return value[int64](g, name) }

func (g given) Float64(name string) float64 { return value[float64](g, name) }

func (g given) Duration(name string) time.Duration { return value[time.Duration](g, name) }

// String returns text. A size is a number of bytes, a list has commas.
func (g given) String(name string) string {
	switch v := g[name].(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case []string:
		return list(v...)
	}
	return value[string](g, name)
}

// Texts returns an option that may be repeated.
func (g given) Texts(name string) (all []string) {
	switch v := g[name].(type) {
	case map[string]string:
		for _, from := range slices.Sorted(maps.Keys(v)) {
			if name == "rename" {
				all = append(all, `"`+strings.ReplaceAll(from, `"`, `""`)+`"=`+v[from])
			} else {
				all = append(all, from+"="+v[from])
			}
		}
	case []string:
		if name != "exclude" {
			return v
		}
		for _, column := range v {
			all = append(all, list(column))
		}
	}
	return all
}

// list writes names as a list of the command's.
func list(names ...string) string {
	var text strings.Builder
	w := csv.NewWriter(&text)
	_ = w.Write(names) // into memory
	w.Flush()
	return strings.TrimSuffix(text.String(), "\n")
}
