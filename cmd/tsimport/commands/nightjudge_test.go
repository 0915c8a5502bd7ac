package commands

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/tablestore/client"
)

// judged is the expected state of a table after its sender's deliveries, by the rules of docs/how-to/nightly-files.md.
type judged struct {
	must   map[string]string          // values that rows must have, by key
	may    map[string]map[string]bool // other values that rows may have, by key
	taken  map[string]string          // contents that were loaded, by file name
	bad    map[string]known           // files that were listed as bad, by name
	missed map[string]int             // number of nights on which a sound file was not loaded, by name
	last   float64                    // time of the load's last success
}

type known struct {
	body    string
	changed time.Time
	sent    bool
}

type state string

const (
	isDone state = "done"
	isBad  state = "bad"
	isOpen state = "open"
)

func (t *nightTable) has(d *delivery) bool {
	return slices.Contains(slices.Collect(maps.Values(t.taken)), string(d.body))
}

func (t *nightTable) young(d *delivery, now time.Time) bool {
	return t.settle > 0 && now.Sub(d.changed) < t.settle
}

// expected returns the state of a file after a night without faults.
func (t *nightTable) expected(d *delivery, now time.Time) state {
	if body, known := t.taken[d.name]; known && body == string(d.body) {
		return isDone
	}
	for name, other := range t.files {
		if t.bad[name].sent && (name == d.name || string(other.body) == string(d.body) && t.taken[d.name] == "") {
			return isBad // until the user has checked its rows
		}
	}
	if _, known := t.taken[d.name]; d.flaw == blank || t.young(d, now) {
		if d.flaw == blank && known && !t.reload {
			return isBad
		}
		return isOpen
	} else if known && !t.reload {
		return isBad // changed
	}
	if t.has(d) {
		return isDone // its content was loaded under another name
	}
	if d.flaw != sound {
		return isBad
	}
	return isDone
}

type listing struct {
	Name     string
	Modified time.Time // set for known files
	Sent     bool
}

func (s *season) listed(t *nightTable, more ...string) map[string]*listing {
	const place = "files --json --endpoint " + nightEndpoint + " --instance " + server.DefaultInstance + " --table "
	args := append(strings.Fields(place+t.name), more...)
	if s.state != "" {
		args = append(args, "--state", s.state)
	}
	p := s.newPod(fate{}).run(args...)
	var files []*listing
	if err := json.Unmarshal([]byte(p.out), &files); p.code != 0 || err != nil {
		s.fail("%v: exit code %d: %s%s: %v", args, p.code, p.out, p.said, err)
	}
	all := map[string]*listing{}
	for _, f := range files {
		all[f.Name] = f
	}
	return all
}

type outcome struct {
	code, bad      int
	rows, rejected int      // rows of the files that were loaded in this night
	more           int      // rows of bad files that may have been read
	places         []string // files that the first cause may name
}

// judge compares a table after the night with the expected one. sure means that no fault can have affected this night.
func (s *season) judge(t *nightTable, clean, sure bool) (of outcome) {
	taken, aside := s.listed(t), s.listed(t, "--state", "bad")
	fresh, inputs := 0, 0
	var loaded []*delivery
	stillBad := map[string]known{}
	for _, name := range slices.Sorted(maps.Keys(t.files)) {
		d := t.files[name]
		want, before := t.expected(d, s.began), t.bad[name]
		is := isOpen
		switch {
		case aside[name] != nil && before.body != "" && t.young(d, s.began): // young files are not examined
		case aside[name] != nil:
			is = isBad
		case taken[name] != nil && (t.taken[name] == string(d.body) || taken[name].Modified.Equal(d.changed)):
			is = isDone
		}
		same := before.body == string(d.body)
		early := !sure && want == isOpen && d.flaw != blank // by an earlier pod's clock the file may not have been young
		if early {
			want = is
		}
		lag := !sure && (is == isOpen || is == isBad && before.body != "" && !same)
		if is != want && !lag {
			s.fail("%s is %s and should be %s (%q): %s", filepath.Base(name), is, want, d.flaw, d.body[:min(len(d.body), 60)])
		}
		if is != want && clean && want == isDone && !t.has(d) { // copies become known when a load begins
			if t.missed[name]++; t.missed[name] > 1 {
				s.fail("%s starves", name)
			}
		}
		switch {
		case want == isBad && is == isBad:
			of.bad++
			of.more += max(len(d.rows), len(d.whole))
			stillBad[name] = known{string(d.body), d.changed, aside[name].Sent}
			of.places = append(of.places, filepath.Base(name))
			if !same {
				fresh++
				inputs++
			}
		case want == isDone && is == isDone && t.taken[name] != string(d.body):
			loaded = append(loaded, d)
		}
		s.maySend(t, d, want, early)
	}
	if t.settle > 0 {
		slices.SortStableFunc(loaded, func(a, b *delivery) int { return a.changed.Compare(b.changed) })
	}
	for _, d := range loaded {
		if t.take(d) {
			inputs++
			of.rows += len(d.rows)
			if n := d.rejects(); n > 0 {
				of.rejected += n
				of.places = append(of.places, filepath.Base(d.name))
			}
		}
	}
	for name, bad := range aside {
		if t.files[name] == nil && sure && !bad.Sent {
			s.fail("%s is bad and not there", name)
		}
	}
	maps.DeleteFunc(t.bad, func(name string, _ known) bool { return aside[name] == nil })
	maps.Copy(t.bad, stillBad)
	s.compare(t)
	switch {
	case fresh > max(1, inputs/10):
		of.code = 1
	case of.bad > 0 || of.rejected > 0:
		of.code = 3
	}
	return of
}

// maySend records rows that pods may have sent from a file that is not known to be loaded.
func (s *season) maySend(t *nightTable, d *delivery, want state, early bool) {
	_, changed := t.taken[d.name]
	if was := t.bad[d.name]; was.body == string(d.body) {
		return // bad files are not sent again
	}
	if t.taken[d.name] == string(d.body) || want == isOpen && !early || want == isBad &&
		(changed && !t.reload || d.flaw == sound) {
		return
	}
	for _, r := range d.rows {
		if r.bad {
			continue
		}
		if t.may[r.key] == nil {
			t.may[r.key] = map[string]bool{}
		}
		t.may[r.key][r.value] = true
	}
}

// take records that a file was loaded, and reports whether its content is new.
func (t *nightTable) take(d *delivery) bool {
	for _, body := range t.taken {
		if body == string(d.body) {
			t.taken[d.name] = body
			return false
		}
	}
	t.taken[d.name] = string(d.body)
	for _, r := range d.rows {
		if !r.bad {
			t.must[r.key] = r.value
			delete(t.may, r.key)
		}
	}
	return true
}

func (s *season) compare(t *nightTable) {
	got := map[string][]string{}
	for key, value := range s.rows(t) {
		got[key] = append(got[key], value)
		s.compared++
		if value != t.must[key] && !t.may[key][value] {
			s.fail("table %s: row %s is %q, and should be %q or one of %v", t.name, key, value, t.must[key], t.may[key])
		}
	}
	for key, values := range got {
		if len(values) > 1 {
			s.fail("table %s: row %s is there %d times", t.name, key, len(values))
		}
	}
	for key := range t.must {
		if len(got[key]) == 0 {
			s.fail("table %s: row %s is lost", t.name, key)
		}
	}
}

func (s *season) rows(t *nightTable) func(yield func(key, value string) bool) {
	sdk, err := client.New(s.t.Context(), client.Target{Endpoint: nightEndpoint, Instance: server.DefaultInstance,
		Transport: s.engine.SameMemory(),
		Credentials: &common.DefaultCredentialsProvider{AccessKeyID: server.DefaultAccessKeyID,
			AccessKeySecret: server.DefaultAccessKeySecret}}, nil)
	must(s.t, err)
	keys := []string{"id"}
	if t.name == "journal" {
		keys = []string{"shop", "number"}
	}
	return func(yield func(string, string) bool) {
		c := &tablestore.RangeRowQueryCriteria{TableName: t.name, MaxVersion: 1, StartPrimaryKey: new(tablestore.PrimaryKey),
			EndPrimaryKey: new(tablestore.PrimaryKey)}
		for _, k := range keys {
			c.StartPrimaryKey.AddPrimaryKeyColumnWithMinValue(k)
			c.EndPrimaryKey.AddPrimaryKeyColumnWithMaxValue(k)
		}
		for c.StartPrimaryKey != nil {
			a := conformance.Try(sdk.GetRange(&tablestore.GetRangeRequest{RangeRowQueryCriteria: c})).Must(s.t)
			for _, r := range a.Rows {
				cells := map[string]any{}
				for _, col := range r.Columns {
					cells[col.ColumnName] = col.Value
				}
				key, value := fmt.Sprint(r.PrimaryKey.PrimaryKeys[0].Value), fmt.Sprintf("%v/%v", cmp.Or(cells["item"], any("")),
					cells["n"])
				if t.name == "journal" {
					key, value = fmt.Sprint(cells["ref"]), fmt.Sprintf("%v/%v", key, cells["n"])
				}
				if !yield(key, value) {
					return
				}
			}
			c.StartPrimaryKey = a.NextStartPrimaryKey
		}
	}
}

var metricLine = regexp.MustCompile(
	`^tsimport_last_run_(\w+)\{command="\w+",load="(\w+)",(?:outcome="(\w+)",)?table="\w*"\} (\S+)$`)

func (s *season) metrics() map[string]float64 {
	values := map[string]float64{}
	for line := range strings.Lines(s.read(s.metricsFile)) {
		if m := metricLine.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			v := conformance.Try(strconv.ParseFloat(m[4], 64)).Must(s.t)
			values[m[1]+m[3]+" "+m[2]] = v
		}
	}
	return values
}

func (s *season) judgeEnd(of map[string]outcome, p *pod) {
	want, first := 0, ""
	for _, c := range []int{3, 1} {
		for _, t := range slices.Backward(s.tables) {
			if of[t.name].code == c {
				want, first = c, t.name
			}
		}
	}
	got, total, done := s.metrics(), map[string]float64{}, len(s.tables)
	for _, t := range s.tables {
		o := of[t.name]
		if got["exit_code "+t.name] != float64(o.code) || got["bad_inputs "+t.name] != float64(o.bad) {
			code, bad := got["exit_code "+t.name], got["bad_inputs "+t.name]
			s.fail("metrics of %s: exit code %v, %v bad inputs; should be %d, %d", t.name, code, bad, o.code, o.bad)
		}
		read, rejected := got["rowsread "+t.name], got["rowsrejected "+t.name]
		if read < float64(o.rows) || read > float64(o.rows+o.more) || rejected < float64(o.rejected) ||
			rejected > float64(o.rejected+o.more) {
			s.fail("metrics of %s: %v rows read, %v rejected; should be %d, %d, and up to %d more", t.name, read, rejected,
				o.rows, o.rejected, o.more)
		}
		s.judgeSuccess(t.name, o.code, &t.last, got)
		for _, n := range []string{"bad_inputs", "rowsread", "rowswritten", "rowsrejected", "rowssuperseded"} {
			total[n] += got[n+" "+t.name]
		}
		if o.code == 1 {
			done--
		}
	}
	if p.code != want || got["exit_code night"] != float64(want) {
		s.fail("exit code %d, %v in the metrics, and should be %d", p.code, got["exit_code night"], want)
	}
	s.judgeSuccess("night", want, &s.last, got)
	for n, is := range total {
		if got[n+" night"] != is {
			s.fail("metrics: %v %s of all loads, and should be %v", got[n+" night"], n, is)
		}
	}
	if want == 0 {
		return
	}
	l := s.lastLine(p)
	if l.load != first || l.done != done || !slices.ContainsFunc(of[first].places,
		func(p string) bool { return strings.Contains(l.cause, p) }) {
		s.fail("the last line names load %s and %d loads done, and should name %s, %d and one of %q: %s", l.load, l.done,
			first, done, of[first].places, p.said)
	}
	if float64(l.read) != total["rowsread"] || float64(l.written) != total["rowswritten"] ||
		float64(l.rejected) != total["rowsrejected"] || float64(l.bad) != total["bad_inputs"] {
		s.fail("the last line has other counts than the metrics: %v: %s", total, p.said)
	}
}

func (s *season) judgeSuccess(load string, code int, last *float64, got map[string]float64) {
	is := got["success_timestamp_seconds "+load]
	if code == 0 {
		if is < float64(s.began.Unix()) {
			s.fail("metrics: %s has succeeded, and the last success is of %v", load, is)
		}
		*last = is
	}
	if is != *last {
		s.fail("metrics: the last success of %s is %v, and should be %v", load, is, *last)
	}
}

// lineOfNight matches the last line of a job: why it stopped, its state and counts, the first cause and the folder.
var lineOfNight = regexp.MustCompile(`^(?:(stopped by \w+); )?job (done|failed|stopped): (\d) of 6 loads done, ([\d,]+) read, ([\d,]+) written, ([\d,]+) rejected, ([\d,]+) superseded` +
	`(?:, ([\d,]+) unfinished)?(?:, ([\d,]+) inputs? set aside)?(?:; load (\w+): (.+))?; see (tsimport-runs/\S+)$`)

type lastLine struct {
	stopped, state, load, cause, folder                        string
	done, read, written, rejected, superseded, unfinished, bad int
}

var causes = map[string]string{"the service is down": "cannot connect", "the secret is wrong": "OTSAuthFailed",
	clockIsOff:          "this machine's clock is too far from the service's",
	"the state is gone": "--state", "the state is not mounted": "it may be a share that is not mounted",
	"SIGTERM": "stopped by terminated", "the service goes away": "connect"}

// judgeSaid compares the output of a pod with its result, in every log format, with and without --quiet.
func (s *season) judgeSaid(what string, p *pod) {
	if p.code == 0 {
		for line := range strings.Lines(p.said) {
			if p.quiet && !strings.Contains(line, "warning") {
				s.fail("quiet, and yet: %s", line)
			}
		}
		return
	}
	l := s.lastLine(p)
	if l.read != l.written+l.rejected+l.superseded+l.unfinished {
		s.fail("the rows of the last line do not add up: %+v: %s", l, p.said)
	}
	if _, err := os.Stat(filepath.Join(l.folder, "job.json")); err != nil {
		s.fail("the last line names %s: %v", l.folder, err)
	}
	if p.code == 143 && l.stopped == "" || p.code != 143 && l.load == "" || (l.done == 6) != (l.state == "done") ||
		(l.state == "done") != (p.code == 3) {
		s.fail("exit code %d, and the last line says: %+v: %s", p.code, l, p.said)
	}
	if cause := causes[what]; p.code != 3 && !strings.Contains(l.stopped+l.cause, cause) &&
		(p.code != 1 || what != "SIGTERM" && what != "the service goes away") {
		s.fail("%s, and the last line lacks %q: %s", what, cause, p.said)
	}
}

func (s *season) lastLine(p *pod) (l lastLine) {
	lines := strings.Split(strings.TrimSuffix(p.said, "\n"), "\n")
	text, is := strings.CutPrefix(lines[len(lines)-1], "tsimport: ")
	var event struct {
		Msg, Event, Command, Level                      string
		RunDir                                          string `json:"run_dir"`
		ExitCode                                        int    `json:"exit_code"`
		Read, Written, Rejected, Superseded, Unfinished int
		Bad                                             int `json:"bad_inputs"`
	}
	if p.json {
		for _, line := range lines {
			event.Msg = ""
			err := json.Unmarshal([]byte(line), &event)
			if is = err == nil && event.Msg != ""; !is {
				s.fail("not an event: %s: %v", line, err)
			}
		}
		text = event.Msg
		is = event.Event == "error" && event.Level == "ERROR" && event.Command == "run" && event.ExitCode == p.code
	}
	m := lineOfNight.FindStringSubmatch(text)
	if m == nil || !is {
		s.fail("exit code %d, and the last line is: %s", p.code, p.said)
	}
	var n []int
	for _, text := range m[3:10] {
		i, _ := strconv.Atoi(strings.ReplaceAll(text, ",", "")) // "" counts as 0
		n = append(n, i)
	}
	l = lastLine{stopped: m[1], state: m[2], load: m[10], cause: m[11], folder: m[12], done: n[0], read: n[1],
		written: n[2], rejected: n[3], superseded: n[4], unfinished: n[5], bad: n[6]}
	if p.json && (event.RunDir != l.folder || event.Read != l.read || event.Written != l.written ||
		event.Rejected != l.rejected || event.Superseded != l.superseded || event.Unfinished != l.unfinished ||
		event.Bad != l.bad) {
		s.fail("the fields of the last event are not what it says: %s", lines[len(lines)-1])
	}
	return l
}
