package datax

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"example.com/tsimport/jobs/job"
)

// MaxColumn is the highest column index that is converted. Every column before it gets a name.
const MaxColumn = 1023

type Job struct {
	File   *job.File
	Target []job.Setting
	Notes  []string // differences and open decisions, one per line

	variables []string // DataX variables that became environment variables
}

type object map[string]json.RawMessage

// refusal is the reason why a job is not converted. Converters panic with it, and Convert returns it.
type refusal struct{ error }

func refusef(format string, args ...any) refusal { return refusal{fmt.Errorf(format, args...)} }

// about, deferred by a converter, prefixes a refusal with the part's name.
func about(part string) {
	switch r := recover().(type) {
	case nil:
	case refusal:
		panic(refusef("%s: %w", part, r.error))
	default:
		panic(r)
	}
}

func Convert(text []byte) (j *Job, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case refusal:
			j, err = nil, r.error
		default:
			panic(r)
		}
	}()
	d := json.NewDecoder(bytes.NewReader(text))
	var root object
	if err := d.Decode(&root); err != nil {
		panic(refusef("read JSON: %w (DataX's comments must be removed)", err))
	}
	if _, err := d.Token(); err != io.EOF {
		panic(refusef("read JSON: text after the job"))
	}
	var body struct {
		Setting object `json:"setting"`
		Content []struct {
			Reader, Writer plugin
			Transformer    json.RawMessage
		} `json:"content"`
	}
	if err := json.Unmarshal(root["job"], &body); err != nil {
		panic(refusef("job: %w", err))
	}
	if len(body.Content) != 1 {
		panic(refusef("job.content has %d entries, but DataX runs only the first; give one entry", len(body.Content)))
	}
	c := body.Content[0]
	if len(c.Transformer) > 0 && string(c.Transformer) != "null" && string(c.Transformer) != "[]" {
		panic(refusef("transformer: not converted; see --set for computed columns"))
	}
	if c.Writer.Name != "otswriter" {
		panic(refusef("writer %q: only otswriter is converted; tsimport export writes a table to files", c.Writer.Name))
	}
	read, ok := readers[c.Reader.Name]
	if !ok {
		panic(refusef("reader %q: not converted; write the load by hand (docs/jobs.md): %s", c.Reader.Name,
			cmp.Or(byHand[c.Reader.Name], "from files that another program has written")))
	}
	j = &Job{File: &job.File{}}
	load := job.Single{Command: job.Load}
	columns, keys := j.writer(c.Writer.Parameter, &load, read.typed)
	limit := errorLimit(body.Setting["errorLimit"])
	set(&load, "max-errors", limit)
	set(&load, "create", "true") // an existing table does not change
	func() {
		defer about(c.Reader.Name)
		read.convert(j, c.Reader.Parameter, c.Writer.Parameter, load, columns, keys)
	}()
	if limit == "-1" {
		j.note("without an error limit any number of records may be rejected; run then ends with exit code 3")
	} else if limit != "0" && len(j.File.Loads) > 1 {
		j.note("the error limit applies to each load; in DataX it applies to all together")
	}
	if len(body.Setting["speed"]) > 0 {
		j.note("setting.speed is dropped: the load finds its own rate; max-wcu and max-rows-per-second limit it")
	}
	j.note("access keys are not copied: set TABLESTORE_ACCESS_KEY_ID and TABLESTORE_ACCESS_KEY_SECRET")
	slices.Sort(j.variables)
	for _, name := range slices.Compact(j.variables) {
		j.note("${" + name + "} is now an environment variable: export " + name + "=… instead of -p \"-D" + name + "=…\"")
	}
	return j, nil
}

// reads describes the conversion of a reader. A typed reader has more types than a text file.
type reads struct {
	typed   bool
	convert func(j *Job, reader, writer object, l job.Single, columns []column, keys int)
}

var readers = map[string]reads{
	"txtfilereader": {false, (*Job).files},
	"otsreader":     {true, (*Job).copied},
	"mysqlreader":   {true, (*Job).sql},
}

// byHand maps each unsupported reader to the input that a load can read instead.
var byHand = map[string]string{
	"ossreader":        "from: oss://BUCKET/OBJECT",
	"ftpreader":        "from: https://HOST/FILE, or files that were fetched",
	"postgresqlreader": "from: postgres://USER@HOST/DATABASE?table=TABLE",
	"mongodbreader":    "from files of mongoexport",
	"hdfsreader":       "from files that were fetched, Parquet or text",
	"odpsreader":       "from Parquet files in an external table on OSS",
}

type plugin struct {
	Name      string `json:"name"`
	Parameter object `json:"parameter"`
}

func (j *Job) note(text string) {
	if !slices.Contains(j.Notes, text) {
		j.Notes = append(j.Notes, text)
	}
}

func set(l *job.Single, key string, values ...string) {
	l.Settings = append(l.Settings, job.Setting{Key: key, Values: values})
}

// known refuses an object with keys that are not in names.
func (o object) known(names ...string) {
	for _, k := range slices.Sorted(maps.Keys(o)) {
		if !slices.Contains(names, k) {
			panic(refusef("%q: not converted; remove it if the job does not need it", k))
		}
	}
}

// knownIn is like known, but also names the part in the refusal.
func (o object) knownIn(part string, names ...string) {
	defer about(part)
	o.known(names...)
}

// only refuses every value of a key except absent, its default. why is the reason.
func (o object) only(key, absent, why string) {
	if got := o.text(key, absent); !strings.EqualFold(got, absent) {
		panic(refusef("%s %q: %s", key, got, why))
	}
}

// needed returns a required text.
func (o object) needed(key string) string {
	v := o.text(key, "")
	if v == "" {
		panic(refusef("%s: missing", key))
	}
	return v
}

// texts returns a list of texts, or a single text as a list. ok is false for anything else.
func texts(raw json.RawMessage) (all []string, ok bool) {
	var one string
	if json.Unmarshal(raw, &all) == nil {
		return all, true
	}
	ok = json.Unmarshal(raw, &one) == nil
	return []string{one}, ok
}

// text returns a text, number or boolean as text, or absent if missing. DataX does not distinguish "true" and true.
func (o object) text(key, absent string) string {
	raw, ok := o[key]
	if !ok || string(raw) == "null" {
		return absent
	}
	s := string(raw)
	if raw[0] == '"' {
		if err := json.Unmarshal(raw, &s); err != nil {
			panic(refusef("%s: %w", key, err))
		}
	} else if raw[0] == '{' || raw[0] == '[' {
		panic(refusef("%s: want a string", key))
	}
	clear(key, s)
	return s
}

// variable matches a DataX variable. bareVariable matches one without braces, which has no equivalent.
var (
	variable     = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)
	bareVariable = regexp.MustCompile(`\$\w+`)
)

// template records the DataX variables of a text. A job file has the same syntax, except for variables without braces.
func (j *Job) template(key, s string) {
	for _, m := range variable.FindAllStringSubmatch(s, -1) {
		j.variables = append(j.variables, m[1])
	}
	rest := variable.ReplaceAllString(s, "")
	if bare := bareVariable.FindString(rest); bare != "" {
		panic(refusef("%s: replace the variable %s with its value, or write ${%s}", key, bare, bare[1:]))
	}
	clear(key, rest)
}

// statements returns the texts of a key that holds a list of texts or a single one.
func (j *Job) statements(o object, key string) []string {
	raw, ok := o[key]
	if !ok || string(raw) == "null" {
		return nil
	}
	all, ok := texts(raw)
	switch {
	case !ok:
		panic(refusef("%s: want a string or a list of strings", key))
	case raw[0] == '"' && strings.TrimSpace(all[0]) == "":
		return nil
	}
	for i, s := range all {
		if all[i] = strings.TrimSpace(s); all[i] == "" {
			panic(refusef("%s: empty", key))
		}
		j.template(key, strings.NewReplacer("\n", " ", "\r", " ").Replace(s))
	}
	return all
}

// clear refuses a text with a variable, a line end or a zero byte, which a job file cannot hold literally.
func clear(key, s string) {
	if strings.Contains(s, "${") {
		panic(refusef("%s: replace the DataX variable with its value", key))
	}
	if strings.ContainsAny(s, "\x00\r\n") {
		panic(refusef("%s: a line end in a value is not converted", key))
	}
}

func errorLimit(raw json.RawMessage) string {
	defer about("errorLimit")
	if len(raw) == 0 || string(raw) == "null" {
		return "-1"
	}
	var o object
	if err := json.Unmarshal(raw, &o); err != nil {
		panic(refusef("want record or percentage"))
	}
	o.known("record", "percentage")
	text := o.text("record", "")
	share := o.text("percentage", "")
	if text == "" && share != "" { // a number of records takes precedence over a share
		v, err := strconv.ParseFloat(share, 64)
		if err != nil || !(v >= 0 && v <= 1) {
			panic(refusef("percentage %q: want a share from 0 to 1", share))
		}
		return strconv.FormatFloat(math.Round(v*1e12)/1e10, 'f', -1, 64) + "%"
	}
	if text == "" {
		return "-1"
	}
	if n, err := strconv.ParseInt(text, 10, 64); err != nil || n < -1 {
		panic(refusef("record %q: want a whole number", text))
	}
	return text
}
