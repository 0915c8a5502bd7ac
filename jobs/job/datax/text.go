package datax

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"example.com/tsimport/jobs/job"
)

// column is a column of the writer. kind is tsimport's name of its type, or empty.
type column struct{ name, kind string }

var ourTypes = map[string]string{"string": "string", "int": "integer", "integer": "integer", "double": "double",
	"bool": "boolean", "boolean": "boolean", "binary": "binary"}

var readerTypes = map[string]string{"string": "string", "long": "integer", "double": "double", "boolean": "boolean"}

// writer converts the settings of otswriter. With a typed reader, each column must have a type, which may be binary.
func (j *Job) writer(o object, l *job.Single, typed bool) (all []column, keys int) {
	defer about("otswriter")
	o.known("endpoint", "accessId", "accessKey", "instanceName", "table", "mode", "newVersion", "enableAutoIncrement",
		"isTimeseriesTable", "primaryKey", "column", "writeMode")
	o.only("mode", "normal", "several versions of a cell are not converted")
	o.only("enableAutoIncrement", "false", "see docs/auto-increment.md and write the load by hand")
	o.only("isTimeseriesTable", "false", "time series tables are not loaded")
	mode := o.text("writeMode", "")
	newer := o.text("newVersion", "false")
	switch {
	case strings.EqualFold(mode, "PutRow"):
	case strings.EqualFold(mode, "UpdateRow") && strings.EqualFold(newer, "false"):
		set(l, "mode", "update")
		set(l, "on-null", "delete") // like the writer
	case strings.EqualFold(mode, "UpdateRow"):
		panic(refusef("writeMode UpdateRow with newVersion: not converted; write mode: update by hand"))
	default:
		panic(refusef("writeMode %q: only PutRow and UpdateRow are converted", mode))
	}
	for _, at := range []struct{ theirs, ours string }{{"endpoint", "endpoint"}, {"instanceName", "instance"}} {
		if v := o.text(at.theirs, ""); v != "" {
			j.Target = append(j.Target, job.Setting{Key: at.ours, Values: []string{v}})
		}
	}
	table := o.text("table", "")
	if !job.IsName(table) || strings.ContainsAny(table, "{}") {
		panic(refusef("table %q: not a name", table))
	}
	l.Name = table
	for _, key := range []string{"primaryKey", "column"} {
		var list []json.RawMessage
		if err := json.Unmarshal(o[key], &list); err != nil || len(list) == 0 {
			panic(refusef("%s: want a list of columns", key))
		}
		if key == "primaryKey" {
			keys = len(list)
		}
		for _, raw := range list {
			var c column
			if json.Unmarshal(raw, &c.name) != nil {
				var entry object
				if err := json.Unmarshal(raw, &entry); err != nil {
					panic(refusef("%s: want names or {name, type}", key))
				}
				entry.known("name", "type")
				c.name = entry.text("name", "")
				kind := entry.text("type", "")
				if c.kind = ourTypes[strings.ToLower(kind)]; c.kind == "" || c.kind == "binary" && !typed {
					panic(refusef("column %q has type %q: not converted", c.name, kind))
				}
			}
			if typed && c.kind == "" {
				panic(refusef("column %q: its type is missing", c.name))
			}
			if key == "primaryKey" && !slices.Contains([]string{"", "string", "integer", "binary"}, c.kind) {
				panic(refusef("key column %q is %s: want string or integer", c.name, c.kind))
			}
			if c.name == "" || strings.ContainsAny(c.name, ",:=\"{}$ \t\r\n") {
				panic(refusef("%s: the name %q is not converted", key, c.name))
			}
			if slices.ContainsFunc(all, func(a column) bool { return a.name == c.name }) {
				panic(refusef("column %q is given twice", c.name))
			}
			all = append(all, c)
		}
	}
	return all, keys
}

// files converts txtfilereader.
func (j *Job) files(o, _ object, l job.Single, columns []column, keys int) {
	o.known(append([]string{"path"}, ofText...)...)
	l.From = j.names(o)
	j.text(o, l, columns, keys)
}

// wildcard converts a DataX name with stars, which match any text across folders, into our pattern.
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
			parts = parts[:len(parts)-1] // drops the file name after the folder's **
		case strings.HasPrefix(part, "*") && (last || part != "*") && !below:
			parts = append(parts, "**")
		}
		if parts = append(parts, part); strings.HasSuffix(part, "*") && !last {
			parts = append(parts, "**")
		}
	}
	pattern := strings.Join(parts, "/")
	j.note("path " + name + ": a dot is any character in DataX, and a star goes into folders; check with " +
		"tsimport inspect that " + pattern + " matches the same files")
	return pattern
}

func (j *Job) names(o object) []string {
	names, ok := texts(o["path"])
	if !ok {
		panic(refusef("path: want a list of names"))
	}
	for i, p := range names {
		j.template("path", p)
		if !strings.HasPrefix(p, "/") || strings.ContainsAny(variable.ReplaceAllString(p, ""), "?[]{}$") ||
			strings.HasSuffix(p, "/") {
			panic(refusef("path %q: not converted; write absolute file names, with no wildcard but *", p))
		}
		names[i] = j.wildcard(p)
	}
	if len(names) == 0 {
		panic(refusef("path: want at least one name"))
	}
	return names
}

// ofText lists the settings for text files.
var ofText = []string{"column", "fieldDelimiter", "encoding", "skipHeader", "compress", "nullFormat"}

func (j *Job) text(o object, load job.Single, columns []column, keys int) {
	l := &load
	names, types := j.fields(o["column"], columns)
	var pk, typed, attributes []string
	for i, c := range columns {
		if i < keys {
			if types[i] != "string" && types[i] != "integer" {
				panic(refusef("key column %q is %s: want string or integer", c.name, types[i]))
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
	j.note("if the first record has more fields than columns, run refuses the file; add them to names")
	set(l, "trim", "true")
	j.nulls(o, l)
	j.note("numbers and booleans that are not exactly of their type are rejected; DataX may round or convert them")
	delimiter := o.text("fieldDelimiter", ",")
	if delimiter == "\t" {
		delimiter = `\t`
	}
	if len([]rune(delimiter)) != 1 && delimiter != `\t` || delimiter == `\` || delimiter == `"` {
		panic(refusef("fieldDelimiter %q: want one character", delimiter))
	}
	set(l, "delimiter", delimiter)
	encoding := strings.ToLower(o.text("encoding", "utf-8"))
	if encoding != "utf-8" && encoding != "gbk" {
		panic(refusef("encoding %q: only UTF-8 and GBK are converted", encoding))
	}
	set(l, "encoding", encoding)
	j.note("a field that is not valid " + encoding + " is rejected; DataX replaces what it cannot decode")
	switch skip := o.text("skipHeader", "false"); skip {
	case "true":
		set(l, "skip-lines", "1")
	case "false":
	default:
		panic(refusef("skipHeader %q: want true or false", skip))
	}
	if packed := o.text("compress", ""); packed != "" && packed != "gzip" && packed != "bzip2" {
		panic(refusef("compress %q: only gzip and bzip2 are read", packed))
	}
	j.File.Loads = append(j.File.Loads, load)
}

// nulls sets the text that means null, nullFormat. Without it no text does, as in DataX's code, but not in its manual.
func (j *Job) nulls(o object, l *job.Single) {
	raw, given := o["nullFormat"]
	null := o.text("nullFormat", "")
	switch given = given && string(raw) != "null"; {
	case !given:
		set(l, "empty", "string")
		j.note(`without nullFormat no text is null, as in DataX; if \N is to be null, add null: ['\N', '"\N"']`)
	case null == "":
		set(l, "empty", "null")
		set(l, "null", `""`)
	default:
		set(l, "empty", "string")
		set(l, "null", null, `"`+null+`"`)
	}
}

// fields returns the field names of a record, and the types of columns.
func (j *Job) fields(raw json.RawMessage, columns []column) (names, types []string) {
	var list []object
	var all []string
	if json.Unmarshal(raw, &all) == nil && len(all) == 1 && all[0] == "*" {
		for i := range columns {
			list = append(list, object{"index": json.RawMessage(strconv.Itoa(i)), "type": json.RawMessage(`"string"`)})
		}
	} else if err := json.Unmarshal(raw, &list); err != nil {
		panic(refusef("column: want a list of {index, type}"))
	}
	if len(list) != len(columns) {
		panic(refusef("the reader has %d columns, but the writer has %d", len(list), len(columns)))
	}
	at := map[int]string{}
	highest := 0
	for i, o := range list {
		name := columns[i].name
		o.knownIn(fmt.Sprintf("column %q", name), "index", "type")
		index := o.text("index", "")
		n, err := strconv.Atoi(index)
		if err != nil || n < 0 || n > MaxColumn {
			panic(refusef("column %q: index %q: want 0 to %d", name, index, MaxColumn))
		}
		if at[n] != "" {
			panic(refusef("columns %q and %q have the same index", at[n], name))
		}
		at[n] = name
		highest = max(highest, n)
		kind := o.text("type", "")
		read := readerTypes[strings.ToLower(kind)]
		written := cmp.Or(columns[i].kind, read)
		if read == "" || read != written && read != "string" {
			panic(refusef("column %q is read as %q and written as %q: not supported", name, kind, written))
		}
		types = append(types, written)
	}
	for i := range highest + 1 {
		name := at[i]
		if name == "" {
			name = fmt.Sprintf("unused_%d", i)
			if slices.ContainsFunc(columns, func(c column) bool { return c.name == name }) {
				panic(refusef("column %q: rename it: the name marks unused fields", name))
			}
		}
		names = append(names, name)
	}
	return names, types
}

// Join merges several jobs into one. If they write to different instances, each load names its own.
func Join(jobs []*Job) *Job {
	one := *jobs[0]
	one.File = &job.File{}
	same := true
	for _, j := range jobs {
		same = same && slices.EqualFunc(j.Target, one.Target,
			func(a, b job.Setting) bool { return a.Key == b.Key && slices.Equal(a.Values, b.Values) })
	}
	if !same {
		one.Target = nil
	}
	for i, j := range jobs {
		for _, l := range j.File.Loads {
			if !same {
				l.Settings = append(slices.Clone(j.Target), l.Settings...)
			}
			// Loads of other jobs may write to a table of the same name, perhaps in another instance.
			if table := l.Value("table"); table != "" {
				l.Name = table
				l.Settings = slices.DeleteFunc(slices.Clone(l.Settings), func(s job.Setting) bool { return s.Key == "table" })
			}
			one.add(l)
		}
		if i > 0 {
			for _, n := range j.Notes {
				one.note(n)
			}
		}
	}
	return &one
}
