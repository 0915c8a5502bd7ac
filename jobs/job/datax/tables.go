package datax

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"example.com/tsimport/internal/tablestore/address"
	"example.com/tsimport/jobs/job"
)

// sourceProfile is the profile of a source with a different endpoint or access key from the target's.
const sourceProfile = "source"

// copied converts a table reader into a copy. The copy computes attributes, so that types and timestamps are DataX's.
func (j *Job) copied(o, writer object, l job.Single, columns []column, keys int) {
	o.known("endpoint", "accessId", "accessKey", "instanceName", "table", "column", "range", "mode", "newVersion",
		"isTimeseriesTable")
	o.only("mode", "normal", "several versions of a cell are not converted; use a copy with versions: all (docs/copy.md)")
	o.only("isTimeseriesTable", "false", "time series tables are not read")
	if l.Value("mode") == "update" {
		panic(refusef("writeMode UpdateRow: not converted for a table, because a copy puts whole rows; use PutRow, or " +
			"export the table and load the file with mode: update"))
	}
	endpoint := o.needed("endpoint")
	from := address.Address{Instance: o.needed("instanceName"), Table: o.needed("table")}
	if writer.text("endpoint", "") != endpoint || string(o["accessId"]) != string(writer["accessId"]) {
		from.Profile = sourceProfile
		j.note(fmt.Sprintf("the source has an endpoint or access key of its own: set %s=%s, %s and %s",
			address.Variable("TABLESTORE_ENDPOINT", sourceProfile), endpoint,
			address.Variable("TABLESTORE_ACCESS_KEY_ID", sourceProfile), address.Variable("TABLESTORE_ACCESS_KEY_SECRET",
				sourceProfile)))
	}
	if _, err := address.Parse(from.String()); err != nil {
		panic(refusal{err})
	}
	l.Command, l.From = job.Copy, []string{from.String()}
	set(&l, "versions", "1")
	bounds(o["range"], &l)
	computed(o["column"], &l, columns, keys)
	j.note("a cell of another type than the writer's is rejected; DataX converts it")
	j.File.Loads = append(j.File.Loads, l)
}

// computed sets the key and the attributes of the copy, each computed from a source column.
func computed(raw json.RawMessage, l *job.Single, columns []column, keys int) {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || len(list) != len(columns) {
		panic(refusef("column: the reader has %d columns, but the writer has %d", len(list), len(columns)))
	}
	var pk, attributes []string
	for i, raw := range list {
		var entry object
		var source string
		if json.Unmarshal(raw, &source) != nil {
			if err := json.Unmarshal(raw, &entry); err != nil {
				panic(refusef("column: want {name}"))
			}
			entry.knownIn(fmt.Sprintf("column %d", i+1), "name")
			source = entry.text("name", "")
		}
		if source == "" || strings.ContainsAny(source, "\"\\{}$") {
			panic(refusef("column: the name %q is not converted", source))
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
}

// bounds sets the range of keys to read.
func bounds(raw json.RawMessage, l *job.Single) {
	defer about("range")
	if len(raw) == 0 || string(raw) == "null" {
		return
	}
	var o object
	if err := json.Unmarshal(raw, &o); err != nil {
		panic(refusef("want begin and end"))
	}
	o.known("begin", "end", "split") // split only sets the number of readers
	for _, end := range []struct{ key, flag, infinite string }{{"begin", "from-key", "INF_MIN"},
		{"end", "to-key", "INF_MAX"}} {
		var list []object
		if text := o[end.key]; len(text) > 0 && string(text) != "null" {
			if err := json.Unmarshal(text, &list); err != nil {
				panic(refusef("%s: want a list of {type, value}", end.key))
			}
		}
		values, last := keyValues(end.key, list)
		switch {
		case len(values) == 0 && (last == "" || last == end.infinite):
			continue
		case len(values) == 0:
			panic(refusef("%s: begins with %s; a range that is read backward is not converted", end.key, last))
		case last == "INF_MAX" || last == "" && end.key == "end":
			panic(refusef("end: DataX reads to the end of this prefix; add a column {\"type\": \"INF_MIN\"}, or write to-key"))
		}
		set(l, end.flag, strings.Join(values, ","))
	}
}

// keyValues returns the values before the first infinite one, and that one, or "" if there is none.
func keyValues(end string, list []object) (values []string, infinite string) {
	defer about(end)
	for _, o := range list {
		o.known("type", "value")
		kind := strings.ToUpper(o.text("type", ""))
		value := o.text("value", "")
		if kind == "INF_MIN" || kind == "INF_MAX" {
			if infinite == "" {
				infinite = kind
			} else if infinite != kind {
				panic(refusef("%s after %s is not converted", kind, infinite))
			}
			continue
		}
		if infinite != "" {
			panic(refusef("a value after %s is not converted", infinite))
		}
		switch kind {
		case "STRING":
			text, err := json.Marshal(value)
			if err != nil {
				panic(refusal{err})
			}
			values = append(values, string(text))
		case "INT", "INTEGER":
			if _, err := strconv.ParseInt(value, 10, 64); err != nil {
				panic(refusef("%q is not a whole number", value))
			}
			values = append(values, value)
		case "BINARY":
			data, err := base64.StdEncoding.DecodeString(value)
			if err != nil {
				panic(refusef("%q is not base64", value))
			}
			values = append(values, fmt.Sprintf("0x%x", data))
		default:
			panic(refusef("the type %q is not converted", kind))
		}
	}
	return values, infinite
}
