package datax

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"tsimport/job"
)

// MaxColumn is the highest index of a column that is converted; every column before it gets a name.
const MaxColumn = 1023

// Job is what a DataX job became.
type Job struct {
	File   *job.File
	Target []job.Setting
	Notes  []string // what differs, or is left to the user; a line each
}

type object map[string]json.RawMessage

// Convert makes a job of the text of a DataX job.
func Convert(text []byte) (*Job, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	var root object
	if err := d.Decode(&root); err != nil {
		return nil, fmt.Errorf("read JSON: %w (DataX's comments must be removed)", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("read JSON: text after the job")
	}
	var body struct {
		Setting object `json:"setting"`
		Content []struct {
			Reader, Writer plugin
			Transformer    json.RawMessage
		} `json:"content"`
	}
	if err := json.Unmarshal(root["job"], &body); err != nil {
		return nil, fmt.Errorf("job: %w", err)
	}
	if len(body.Content) != 1 {
		return nil, fmt.Errorf("job.content has %d entries, of which DataX runs the first only; convert jobs of one", len(body.Content))
	}
	c := body.Content[0]
	if len(c.Transformer) > 0 && string(c.Transformer) != "null" && string(c.Transformer) != "[]" {
		return nil, errors.New("transformer: not converted; see --set for computed columns")
	}
	if c.Writer.Name != "otswriter" {
		return nil, fmt.Errorf("writer %q: only otswriter is converted", c.Writer.Name)
	}
	switch c.Reader.Name {
	case "txtfilereader", "ossreader":
	case "postgresqlreader":
		return nil, errors.New("reader postgresqlreader: not converted; write a load from postgres:// (docs/sql.md), or write its query to CSV and load that")
	case "mysqlreader":
		return nil, errors.New("reader mysqlreader: not converted; write a load from mysql:// (docs/sql.md), or write its query to CSV and load that")
	case "otsreader":
		return nil, errors.New("reader otsreader: not converted; write a load with command: copy (docs/copy.md)")
	default:
		return nil, fmt.Errorf("reader %q: not converted; only txtfilereader and ossreader are", c.Reader.Name)
	}
	j := &Job{File: &job.File{}}
	load := job.Single{Command: job.Load}
	columns, keys, err := j.writer(c.Writer.Parameter, &load)
	if err != nil {
		return nil, fmt.Errorf("otswriter: %w", err)
	}
	if c.Reader.Name == "ossreader" {
		err = j.objects(c.Reader.Parameter, c.Writer.Parameter, &load)
	} else {
		err = j.files(c.Reader.Parameter, &load)
	}
	if err == nil {
		err = j.text(c.Reader.Parameter, &load, columns, keys)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Reader.Name, err)
	}
	limit, err := errorLimit(body.Setting["errorLimit"])
	if err != nil {
		return nil, fmt.Errorf("errorLimit: %w", err)
	}
	set(&load, "max-errors", limit)
	if limit == "-1" {
		j.note("without a limit of errors any number of records may be rejected; run ends with exit code 3 then")
	}
	if len(body.Setting["speed"]) > 0 {
		j.note("setting.speed is dropped: the load finds its own rate; max-wcu and max-rows-per-second limit it")
	}
	j.note("access keys are not copied: set TABLESTORE_ACCESS_KEY_ID and TABLESTORE_ACCESS_KEY_SECRET")
	j.File.Loads = []job.Single{load}
	return j, nil
}

type plugin struct {
	Name      string `json:"name"`
	Parameter object `json:"parameter"`
}

func (j *Job) note(text string) { j.Notes = append(j.Notes, text) }

func set(l *job.Single, key string, values ...string) {
	l.Settings = append(l.Settings, job.Setting{Key: key, Values: values})
}

// known refuses the keys of o that are not in names.
func (o object) known(names ...string) error {
	var unknown []string
	for k := range o {
		if !slices.Contains(names, k) {
			unknown = append(unknown, k)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	return fmt.Errorf("%q: not converted; remove it if the job does not need it", unknown[0])
}

// text is a text, number or truth; DataX takes "true" and true alike.
func (o object) text(key, absent string) (string, error) {
	raw, ok := o[key]
	if !ok || string(raw) == "null" {
		return absent, nil
	}
	s := string(raw)
	if raw[0] == '"' {
		if err := json.Unmarshal(raw, &s); err != nil {
			return "", fmt.Errorf("%s: %w", key, err)
		}
	} else if raw[0] == '{' || raw[0] == '[' {
		return "", fmt.Errorf("%s: want a text", key)
	}
	return s, clear(key, s)
}

// clear refuses texts in which a job file, or a list in one, would see something else.
func clear(key, s string) error {
	if strings.Contains(s, "${") {
		return fmt.Errorf("%s: replace the variable of DataX by its value", key)
	}
	if strings.ContainsAny(s, "\x00\r\n") {
		return fmt.Errorf("%s: a line end in a value is not converted", key)
	}
	return nil
}

func errorLimit(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "-1", nil
	}
	var o object
	if err := json.Unmarshal(raw, &o); err != nil {
		return "", errors.New("want record or percentage")
	}
	if err := o.known("record", "percentage"); err != nil {
		return "", err
	}
	text, err := o.text("record", "")
	if err != nil {
		return "", err
	}
	share, err := o.text("percentage", "")
	if err != nil {
		return "", err
	}
	if text == "" && share != "" { // a number of records counts before a share, which is of one
		v, err := strconv.ParseFloat(share, 64)
		if err != nil || !(v >= 0 && v <= 1) {
			return "", fmt.Errorf("percentage %q: want 0 to 1, as DataX does", share)
		}
		return strconv.FormatFloat(math.Round(v*1e12)/1e10, 'f', -1, 64) + "%", nil
	}
	if text == "" {
		return "-1", nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err != nil || n < -1 {
		return "", fmt.Errorf("record %q: want a whole number", text)
	}
	return text, nil
}
