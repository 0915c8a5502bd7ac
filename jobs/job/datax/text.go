package datax

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"example.com/tsimport/jobs/job"
)

// column is one that the writer writes; kind is DataX's name of its type, or empty.
type column struct{ name, kind string }

var ourTypes = map[string]string{"string": "string", "int": "integer", "integer": "integer", "double": "double", "bool": "boolean", "boolean": "boolean", "binary": "binary"}

var readerTypes = map[string]string{"string": "string", "long": "integer", "double": "double", "boolean": "boolean"}

// writer reads what otswriter does. A reader that is typed has binary columns, too, and no types of its own that a column could take.
func (j *Job) writer(o object, l *job.Single, typed bool) (all []column, keys int, err error) {
	if err := o.known("endpoint", "accessId", "accessKey", "instanceName", "table", "mode", "newVersion", "enableAutoIncrement", "isTimeseriesTable",
		"primaryKey", "column", "writeMode"); err != nil {
		return nil, 0, err
	}
	for _, want := range []struct{ key, is, why string }{
		{"mode", "normal", "several versions of a cell are not converted"},
		{"enableAutoIncrement", "false", "see docs/auto-increment.md and write the load by hand"},
		{"isTimeseriesTable", "false", "time series tables are not loaded"},
	} {
		got, err := o.text(want.key, want.is)
		if err != nil {
			return nil, 0, err
		}
		if !strings.EqualFold(got, want.is) {
			return nil, 0, fmt.Errorf("%s %q: %s", want.key, got, want.why)
		}
	}
	mode, err := o.text("writeMode", "")
	if err != nil {
		return nil, 0, err
	}
	newer, err := o.text("newVersion", "false")
	if err != nil {
		return nil, 0, err
	}
	switch {
	case strings.EqualFold(mode, "PutRow"):
	case strings.EqualFold(mode, "UpdateRow") && strings.EqualFold(newer, "false"):
		set(l, "mode", "update")
		set(l, "on-null", "delete") // as the writer does
	case strings.EqualFold(mode, "UpdateRow"):
		return nil, 0, errors.New("writeMode UpdateRow with newVersion: not converted; write mode: update by hand")
	default:
		return nil, 0, fmt.Errorf("writeMode %q: only PutRow and UpdateRow are converted", mode)
	}
	for _, at := range []struct{ theirs, ours string }{{"endpoint", "endpoint"}, {"instanceName", "instance"}} {
		v, err := o.text(at.theirs, "")
		if err != nil {
			return nil, 0, err
		}
		if v != "" {
			j.Target = append(j.Target, job.Setting{Key: at.ours, Values: []string{v}})
		}
	}
	table, err := o.text("table", "")
	if err != nil {
		return nil, 0, err
	}
	if !job.IsName(table) || strings.ContainsAny(table, "{}") {
		return nil, 0, fmt.Errorf("table %q: not a name", table)
	}
	l.Name = table
	for _, key := range []string{"primaryKey", "column"} {
		var list []json.RawMessage
		if err := json.Unmarshal(o[key], &list); err != nil || len(list) == 0 {
			return nil, 0, fmt.Errorf("%s: want a list of columns", key)
		}
		if key == "primaryKey" {
			keys = len(list)
		}
		for _, raw := range list {
			var c column
			if json.Unmarshal(raw, &c.name) != nil {
				var entry object
				if err := json.Unmarshal(raw, &entry); err != nil {
					return nil, 0, fmt.Errorf("%s: want names or {name, type}", key)
				}
				if err := entry.known("name", "type"); err != nil {
					return nil, 0, err
				}
				if c.name, err = entry.text("name", ""); err != nil {
					return nil, 0, err
				}
				kind, err := entry.text("type", "")
				if err != nil {
					return nil, 0, err
				}
				if c.kind = ourTypes[strings.ToLower(kind)]; c.kind == "" || c.kind == "binary" && !typed {
					return nil, 0, fmt.Errorf("column %q has type %q: not converted", c.name, kind)
				}
			}
			if typed && c.kind == "" {
				return nil, 0, fmt.Errorf("column %q: its type is missing", c.name)
			}
			if key == "primaryKey" && !slices.Contains([]string{"", "string", "integer", "binary"}, c.kind) {
				return nil, 0, fmt.Errorf("key column %q is %s: want string or integer", c.name, c.kind)
			}
			if c.name == "" || strings.ContainsAny(c.name, ",:=\"{}$ \t\r\n") {
				return nil, 0, fmt.Errorf("%s: the name %q is not converted", key, c.name)
			}
			if slices.ContainsFunc(all, func(a column) bool { return a.name == c.name }) {
				return nil, 0, fmt.Errorf("column %q comes twice", c.name)
			}
			all = append(all, c)
		}
	}
	return all, keys, nil
}

// files reads what txtfilereader reads.
func (j *Job) files(o, _ object, l job.Single, columns []column, keys int) (err error) {
	if err := o.known(append([]string{"path"}, ofText...)...); err != nil {
		return err
	}
	if l.From, err = j.names(o); err != nil {
		return err
	}
	return j.text(o, l, columns, keys)
}

// wildcard is our pattern for a name of DataX with stars, which are any text, also of folders.
func (j *Job) wildcard(name string) string {
	if !strings.Contains(name, "*") {
		return name
	}
	var parts []string
	theirs := strings.Split(name, "/")
	for i, part := range theirs {
		for strings.Contains(part, "**") {
			part = strings.ReplaceAll(part, "**", "*")
		}
		last, below := i == len(theirs)-1, len(parts) > 0 && parts[len(parts)-1] == "**"
		switch {
		case part == "*" && !last && below:
			parts = parts[:len(parts)-1] // it comes after the star
		case strings.HasPrefix(part, "*") && (last || part != "*") && !below:
			parts = append(parts, "**")
		}
		if parts = append(parts, part); strings.HasSuffix(part, "*") && !last {
			parts = append(parts, "**")
		}
	}
	pattern := strings.Join(parts, "/")
	j.note("path " + name + ": a dot is any character in DataX, and a star goes into folders; see with inspect whether " + pattern + " takes the same files")
	return pattern
}

// names are names of files.
func (j *Job) names(o object) (names []string, err error) {
	if err := json.Unmarshal(o["path"], &names); err != nil {
		var one string
		if json.Unmarshal(o["path"], &one) != nil {
			return nil, errors.New("path: want a list of names")
		}
		names = []string{one}
	}
	for i, p := range names {
		if err := j.template("path", p); err != nil {
			return nil, err
		}
		if !strings.HasPrefix(p, "/") || strings.ContainsAny(variable.ReplaceAllString(p, ""), "?[]{}$") || strings.HasSuffix(p, "/") {
			return nil, fmt.Errorf("path %q: not converted; write full names of files, from /, of wildcards * only", p)
		}
		names[i] = j.wildcard(p)
	}
	if len(names) == 0 {
		return nil, errors.New("path: names nothing")
	}
	return names, nil
}

// ofText are the settings of text.
var ofText = []string{"column", "fieldDelimiter", "encoding", "skipHeader", "compress", "nullFormat"}

func (j *Job) text(o object, load job.Single, columns []column, keys int) error {
	l := &load
	names, types, err := j.fields(o["column"], columns)
	if err != nil {
		return err
	}
	var pk, typed, attributes []string
	for i, c := range columns {
		if i < keys {
			if types[i] != "string" && types[i] != "integer" {
				return fmt.Errorf("key column %q is %s: want string or integer", c.name, types[i])
			}
			pk = append(pk, c.name+":"+types[i])
			continue
		}
		typed = append(typed, c.name+"="+types[i])
		attributes = append(attributes, c.name)
	}
	set(l, "pk", pk...)
	set(l, "columns", strings.Join(attributes, ","))
	set(l, "type", typed...)
	set(l, "format", "csv")
	set(l, "no-header", "true")
	set(l, "names", strings.Join(names, ","))
	set(l, "ragged", "truncate")
	j.note("a record with too few fields is rejected; DataX reads the missing ones as null")
	j.note("if the first record has more fields than the columns, run refuses the file; add names for these fields to names")
	set(l, "trim", "true")
	if err := j.nulls(o, l); err != nil {
		return err
	}
	j.note("numbers and booleans that are not exactly of their type are rejected; DataX may round or convert them")
	for _, s := range []struct{ theirs, absent string }{{"fieldDelimiter", ","}, {"encoding", "utf-8"}, {"skipHeader", "false"}, {"compress", ""}} {
		v, err := o.text(s.theirs, s.absent)
		if err != nil {
			return err
		}
		switch s.theirs {
		case "fieldDelimiter":
			if v == "\t" {
				v = `\t`
			}
			if len([]rune(v)) != 1 && v != `\t` || v == `\` || v == `"` {
				return fmt.Errorf("fieldDelimiter %q: want one character", v)
			}
			set(l, "delimiter", v)
		case "encoding":
			v = strings.ToLower(v)
			if v != "utf-8" && v != "gbk" {
				return fmt.Errorf("encoding %q: only UTF-8 and GBK are converted", v)
			}
			set(l, "encoding", v)
			j.note("a field that is not valid " + v + " is rejected; DataX replaces what it cannot decode")
		case "skipHeader":
			if v == "true" {
				set(l, "skip-lines", "1")
			} else if v != "false" {
				return fmt.Errorf("skipHeader %q: want true or false", v)
			}
		case "compress":
			if v != "" && v != "gzip" && v != "bzip2" {
				return fmt.Errorf("compress %q: only gzip and bzip2 are read", v)
			}
		}
	}
	j.File.Loads = append(j.File.Loads, load)
	return nil
}

// nulls sets which texts are null: those that are the nullFormat, in quotes or not, and none without one. (DataX's page says that it is \N by
// default; its program has no default.)
func (j *Job) nulls(o object, l *job.Single) error {
	raw, given := o["nullFormat"]
	null, err := o.text("nullFormat", "")
	if err != nil {
		return err
	}
	switch given = given && string(raw) != "null"; {
	case !given:
		set(l, "empty", "string")
		j.note(`nullFormat is not given, so that no text is null, as DataX reads it; if \N is meant to be null, add null: ['\N'] and quoted-null: ['\N']`)
	case null == "":
		set(l, "empty", "null")
		set(l, "quoted-empty", "null")
	default:
		set(l, "empty", "string")
		set(l, "null", null)
		set(l, "quoted-null", null)
	}
	return nil
}

// fields has the names of the fields of a record, and the types of columns.
func (j *Job) fields(raw json.RawMessage, columns []column) (names, types []string, err error) {
	var list []object
	var all []string
	if json.Unmarshal(raw, &all) == nil && len(all) == 1 && all[0] == "*" {
		for i := range columns {
			list = append(list, object{"index": json.RawMessage(strconv.Itoa(i)), "type": json.RawMessage(`"string"`)})
		}
	} else if err := json.Unmarshal(raw, &list); err != nil {
		return nil, nil, errors.New("column: want a list of {index, type}")
	}
	if len(list) != len(columns) {
		return nil, nil, fmt.Errorf("the reader has %d columns and the writer %d", len(list), len(columns))
	}
	at := map[int]string{}
	highest := 0
	for i, o := range list {
		name := columns[i].name
		if err := o.known("index", "type"); err != nil {
			return nil, nil, fmt.Errorf("column %q: %w", name, err)
		}
		index, err := o.text("index", "")
		if err != nil {
			return nil, nil, err
		}
		n, err := strconv.Atoi(index)
		if err != nil || n < 0 || n > MaxColumn {
			return nil, nil, fmt.Errorf("column %q: index %q: want 0 to %d", name, index, MaxColumn)
		}
		if at[n] != "" {
			return nil, nil, fmt.Errorf("columns %q and %q have the same index", at[n], name)
		}
		at[n] = name
		highest = max(highest, n)
		kind, err := o.text("type", "")
		if err != nil {
			return nil, nil, err
		}
		read := readerTypes[strings.ToLower(kind)]
		written := columns[i].kind
		written = cmp.Or(written, read)
		if read == "" || read != written && read != "string" {
			return nil, nil, fmt.Errorf("column %q is read as %q and written as %q: that conversion of DataX has no equal here", name, kind, written)
		}
		types = append(types, written)
	}
	for i := range highest + 1 {
		name := at[i]
		if name == "" {
			name = fmt.Sprintf("unused_%d", i)
			if slices.ContainsFunc(columns, func(c column) bool { return c.name == name }) {
				return nil, nil, fmt.Errorf("column %q: rename it, the name stands for an unused field", name)
			}
		}
		names = append(names, name)
	}
	return names, types, nil
}
