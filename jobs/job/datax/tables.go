package datax

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"example.com/tsimport/internal/tablestore/address"
	"example.com/tsimport/jobs/job"
)

// sourceProfile is the profile of a source that has another endpoint or access key than the target.
const sourceProfile = "source"

// copied makes a copy of a reader of a table. Each attribute is computed, so that a cell of another type than the writer's is rejected, and
// has the time of its write, as with DataX.
func (j *Job) copied(o, writer object, l job.Single, columns []column, keys int) error {
	if err := o.known("endpoint", "accessId", "accessKey", "instanceName", "table", "column", "range", "mode", "newVersion", "isTimeseriesTable"); err != nil {
		return err
	}
	for _, want := range []struct{ key, is, why string }{
		{"mode", "normal", "several versions of a cell are not converted; a copy with versions: all keeps them (docs/copy.md)"},
		{"isTimeseriesTable", "false", "time series tables are not read"},
	} {
		got, err := o.text(want.key, want.is)
		if err != nil {
			return err
		}
		if !strings.EqualFold(got, want.is) {
			return fmt.Errorf("%s %q: %s", want.key, got, want.why)
		}
	}
	if l.Value("mode") == "update" {
		return errors.New("writeMode UpdateRow: not converted of a table, as a copy puts whole rows; use PutRow, or export the table and load the file with mode: update")
	}
	values := map[string]string{}
	for _, key := range []string{"endpoint", "instanceName", "table"} {
		v, err := o.text(key, "")
		if err != nil {
			return err
		}
		if v == "" {
			return fmt.Errorf("%s: is missing", key)
		}
		values[key] = v
	}
	from := address.Address{Instance: values["instanceName"], Table: values["table"]}
	if theirs, err := writer.text("endpoint", ""); err != nil || theirs != values["endpoint"] || string(o["accessId"]) != string(writer["accessId"]) {
		from.Profile = sourceProfile
		j.note(fmt.Sprintf("the source has an endpoint or access key of its own: set %s=%s, %s and %s", address.Variable("TABLESTORE_ENDPOINT", sourceProfile), values["endpoint"],
			address.Variable("TABLESTORE_ACCESS_KEY_ID", sourceProfile), address.Variable("TABLESTORE_ACCESS_KEY_SECRET", sourceProfile)))
	}
	if _, err := address.Parse(from.String()); err != nil {
		return err
	}
	l.Command, l.From = job.Copy, []string{from.String()}
	set(&l, "versions", "1")
	if err := bounds(o["range"], &l); err != nil {
		return fmt.Errorf("range: %w", err)
	}
	if err := computed(o["column"], &l, columns, keys); err != nil {
		return err
	}
	j.note("a cell of another type than the writer's is rejected; DataX converts it")
	j.File.Loads = append(j.File.Loads, l)
	return nil
}

// computed sets key and attributes, each from a column of the source.
func computed(raw json.RawMessage, l *job.Single, columns []column, keys int) error {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || len(list) != len(columns) {
		return fmt.Errorf("column: the reader has %d and the writer %d", len(list), len(columns))
	}
	var pk, attributes []string
	for i, raw := range list {
		var entry object
		var source string
		if json.Unmarshal(raw, &source) != nil {
			if err := json.Unmarshal(raw, &entry); err != nil {
				return errors.New("column: want {name}")
			}
			if err := entry.known("name"); err != nil {
				return fmt.Errorf("column %d: %w", i+1, err)
			}
			var err error
			if source, err = entry.text("name", ""); err != nil {
				return err
			}
		}
		if source == "" || strings.ContainsAny(source, "\"\\{}$") {
			return fmt.Errorf("column: the name %q is not converted", source)
		}
		set := columns[i].name + ":" + columns[i].kind + "=col(" + strconv.Quote(source) + ")"
		if i < keys {
			pk = append(pk, set)
		} else {
			attributes = append(attributes, set)
		}
	}
	set(l, "pk", pk...)
	set(l, "columns", "")
	set(l, "set", attributes...)
	return nil
}

// bounds sets the keys between which rows are read.
func bounds(raw json.RawMessage, l *job.Single) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var o object
	if err := json.Unmarshal(raw, &o); err != nil {
		return errors.New("want begin and end")
	}
	if err := o.known("begin", "end", "split"); err != nil { // split only says how many read at a time
		return err
	}
	for _, end := range []struct{ key, flag, infinite string }{{"begin", "from-key", "INF_MIN"}, {"end", "to-key", "INF_MAX"}} {
		var list []object
		if text := o[end.key]; len(text) > 0 && string(text) != "null" {
			if err := json.Unmarshal(text, &list); err != nil {
				return fmt.Errorf("%s: want a list of {type, value}", end.key)
			}
		}
		values, last, err := keyValues(list)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", end.key, err)
		case len(values) == 0 && (last == "" || last == end.infinite):
			continue
		case len(values) == 0:
			return fmt.Errorf("%s: begins with %s; a range that is read backward is not converted", end.key, last)
		case last == "INF_MAX" || last == "" && end.key == "end":
			return errors.New("end: DataX reads to the end of this beginning of a key; add a column {\"type\": \"INF_MIN\"}, or write to-key by hand")
		}
		set(l, end.flag, strings.Join(values, ","))
	}
	return nil
}

// keyValues are the values before the first infinite one, and what that is.
func keyValues(list []object) (values []string, infinite string, err error) {
	for _, o := range list {
		if err := o.known("type", "value"); err != nil {
			return nil, "", err
		}
		kind, err := o.text("type", "")
		if err != nil {
			return nil, "", err
		}
		value, err := o.text("value", "")
		if err != nil {
			return nil, "", err
		}
		kind = strings.ToUpper(kind)
		if slices.Contains([]string{"INF_MIN", "INF_MAX"}, kind) {
			if infinite == "" {
				infinite = kind
			} else if infinite != kind {
				return nil, "", fmt.Errorf("%s after %s is not converted", kind, infinite)
			}
			continue
		}
		if infinite != "" {
			return nil, "", fmt.Errorf("a value after %s is not converted", infinite)
		}
		switch kind {
		case "STRING":
			text, err := json.Marshal(value)
			if err != nil {
				return nil, "", err
			}
			values = append(values, string(text))
		case "INT", "INTEGER":
			if _, err := strconv.ParseInt(value, 10, 64); err != nil {
				return nil, "", fmt.Errorf("%q is not a whole number", value)
			}
			values = append(values, value)
		case "BINARY":
			data, err := base64.StdEncoding.DecodeString(value)
			if err != nil {
				return nil, "", fmt.Errorf("%q is not base64", value)
			}
			values = append(values, fmt.Sprintf("0x%x", data))
		default:
			return nil, "", fmt.Errorf("the type %q is not converted", kind)
		}
	}
	return values, infinite, nil
}
