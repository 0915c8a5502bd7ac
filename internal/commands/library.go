package commands

import (
	"reflect"
	"time"

	"github.com/urfave/cli/v2"

	"tsimport"
	"tsimport/pipeline"
	"tsimport/pipeline/options"
)

// libraryOptions are the flags of a load as options of the library, whose fields have the flags' names. The flags have been read
// into cfg before, and are good.
func libraryOptions(c *cli.Context, cfg *pipeline.Config, t *target) (o tsimport.LoadOptions, err error) {
	fields := reflect.ValueOf(&o).Elem()
	for i := range fields.NumField() {
		name := options.FlagName(fields.Type().Field(i).Name)
		if !c.IsSet(name) {
			continue
		}
		switch to := fields.Field(i).Addr().Interface().(type) {
		case *string:
			*to = c.String(name)
		case *bool:
			*to = c.Bool(name)
		case *int:
			*to = c.Int(name)
		case *int64:
			if *to = c.Int64(name); c.String(name) != "" { // a size
				*to, err = options.ParseSize(c.String(name))
			}
		case *float64:
			*to = c.Float64(name)
		case *time.Duration:
			*to = c.Duration(name)
		case *[]string:
			*to, err = listOf(c, name)
		}
		if err != nil {
			return o, usagef("--%s: %v", name, err)
		}
	}
	o.Rename, o.Type = cfg.Columns.Rename, map[string]string{}
	for _, given := range textsOf(c, "type") {
		for _, text := range options.CutTypes(given) {
			name, of, _ := options.CutType(text)
			o.Type[name] = of
		}
	}
	// What a zero value of the library does not say.
	o.NoHeader = cfg.Read.NoHeader
	for name, to := range map[string]*string{"quote": &o.Quote, "escape": &o.Escape} {
		if c.IsSet(name) && *to == "" {
			*to = "none"
		}
	}
	o.Memory = cfg.Limits.Memory
	o.Create = o.Create || t.embedded
	if t.embedded && o.Settle == 0 {
		// A store in this process has done with a request when it answers.
		o.Settle = time.Millisecond
	}
	return o, nil
}

// listOf returns a flag that is a list, or that may be repeated.
func listOf(c *cli.Context, name string) (all []string, err error) {
	switch name {
	case "columns", "names":
		return options.List(c.String(name))
	case "exclude":
		for _, text := range textsOf(c, name) {
			names, err := options.List(text)
			if err != nil {
				return nil, err
			}
			all = append(all, names...)
		}
		return all, nil
	}
	return textsOf(c, name), nil
}

// library is the target of the library.
func (t *target) library() tsimport.Target {
	return tsimport.Target{Endpoint: t.Endpoint, Instance: t.Instance, Credentials: t.Credentials, Transport: t.Transport, RequestTimeout: t.RequestTimeout}
}
