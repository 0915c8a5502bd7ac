package pipeline

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
)

// sequence is the oracle: it computes the result of loading the records one after the other.
type sequence struct {
	leaves     leaves
	mode       table.Mode
	condition  table.Existence
	deleteNull bool
	when       string
	key        *drawnKey
	ops        map[string]table.Mode // in a load of changes, each record's operation, by its column c
	refuses    bool                  // the service refuses records with refusedWord
}

type leftBySequence struct {
	rows     contents
	rejected []string
	left     int64 // records left out by the condition on columns
	// unsent holds refused records that a later record may supersede before they are sent; open lists those of each key.
	unsent map[string]bool
	open   map[string][]string
	// past holds all rows that each key has ever had, "" for none. A stopped load leaves one of them.
	past map[string][]string
	// refusedLater counts records that the service refuses although an earlier record has written their key.
	refusedLater int
	numbers      map[string]int // number of numbered rows for each id
}

func (s *sequence) apply(before contents, records []drawnRecord) leftBySequence {
	left := leftBySequence{rows: maps.Clone(before), past: map[string][]string{}, unsent: map[string]bool{},
		open: map[string][]string{}, numbers: map[string]int{}}
	for i := range records {
		r := &records[i]
		_, written := left.rows[s.key.row(r)]
		switch good := s.one(&left, r); {
		case !good && s.makesRow(r) && written && s.refused(r):
			left.refusedLater++
			fallthrough
		case !good && s.supersedes() && s.makesRow(r):
			left.open[s.key.row(r)] = append(left.open[s.key.row(r)], r.name())
			fallthrough
		case !good:
			left.rejected = append(left.rejected, r.name())
		default:
			for _, earlier := range left.open[s.key.row(r)] {
				left.unsent[earlier] = true
			}
		}
	}
	return left
}

// supersedes reports whether waiting records are superseded by later ones of their key.
func (s *sequence) supersedes() bool { return s.mode == table.Put && s.condition == table.Ignore }

// makesRow reports whether a record becomes a row, so that the service is asked to write it.
func (s *sequence) makesRow(r *drawnRecord) bool { return !r.ragged && !(s.key.needsID && r.id == "") }

// refused reports whether the service refuses a record that becomes a row.
func (s *sequence) refused(r *drawnRecord) bool {
	return s.refuses && s.modeOf(r) != table.Delete && strings.HasPrefix(r.b, refusedWord)
}

// modeOf returns the operation of a record.
func (s *sequence) modeOf(r *drawnRecord) table.Mode {
	if s.mode == table.Changes {
		return s.ops[r.c]
	}
	return s.mode
}

func (s *sequence) one(left *leftBySequence, r *drawnRecord) bool {
	if !s.makesRow(r) || s.refused(r) {
		return false
	}
	key := s.key.row(r)
	if s.leaves == numberedRows {
		left.numbers[key]++
		key = fmt.Sprint(key, "/", left.numbers[key])
	}
	old, exists := left.rows[key]
	if s.condition == table.ExpectExist && !exists || s.condition == table.ExpectNotExist && exists {
		return false
	}
	if s.leaves == rowsThatPass && exists && !s.passes(old["n"], r.n) {
		left.left++
		return true
	}
	if len(left.past[key]) == 0 {
		left.past[key] = append(left.past[key], drawnRow(old, exists))
	}
	mode := s.modeOf(r)
	if mode == table.Delete {
		delete(left.rows, key)
		left.past[key] = append(left.past[key], "")
		return true
	}
	cells := map[string]string{}
	if mode != table.Put {
		maps.Copy(cells, old)
	}
	for name, v := range s.given(r) {
		switch {
		case v == "" && (s.deleteNull || s.leaves == rowsOfChanges && mode == table.Update):
			delete(cells, name)
		case v == "":
		case s.leaves == sumsOfRows:
			cells[name] = added(cells[name], v)
		case s.leaves == allVersions && cells[name] != "":
			cells[name] = v + newerThan + cells[name]
		default:
			cells[name] = v
		}
	}
	if mode == table.Update && !exists && len(cells) == 0 { // deletions alone do not create a row
		left.past[key] = append(left.past[key], "")
		return true
	}
	left.rows[key] = cells
	left.past[key] = append(left.past[key], drawnRow(cells, true))
	return true
}

func (s *sequence) given(r *drawnRecord) map[string]string {
	given := map[string]string{"a": r.a, "b": r.b}
	if s.leaves != sumsOfRows && s.leaves != rowsOfChanges {
		given["c"] = r.c
	}
	for _, name := range s.key.columns {
		given[name] = r.id
		if name == "n" {
			given[name] = strconv.FormatInt(r.n, 10)
		}
	}
	return given
}

func (s *sequence) passes(stored string, now int64) bool {
	was, _ := strconv.ParseInt(stored, 10, 64)
	switch s.when {
	case "stored.n <= new.n":
		return was <= now
	case "new.n < stored.n":
		return now < was
	}
	return was < now
}

func added(a, b string) string {
	x, _ := strconv.ParseInt(a, 10, 64)
	y, _ := strconv.ParseInt(b, 10, 64)
	return strconv.FormatInt(x+y, 10)
}

// newerThan separates the versions of a cell in contents.
const newerThan = " newer than "

// drawnRow returns a row as text, or "" if it does not exist.
func drawnRow(cells map[string]string, exists bool) string {
	if !exists {
		return ""
	}
	text := conformance.Try(json.Marshal(cells)).Must(conformance.Sure{}) // sorted by name
	return string(text)
}

// left returns a table's content in the form of the oracle: without marks, and with numbers as ranks in an id's rows.
func (m *drawnLoad) left(table contents) contents {
	all := contents{}
	numbers := map[string][]int64{}
	for key, cells := range table {
		cells = maps.Clone(cells)
		delete(cells, plan.DefaultMarkColumn)
		if m.mode.leaves != numberedRows {
			all[key] = cells
			continue
		}
		id, number := numberOf(key)
		numbers[id] = append(numbers[id], number)
	}
	for id, n := range numbers {
		slices.Sort(n)
		for place, number := range n {
			cells := maps.Clone(table[fmt.Sprint(id, "/", number)])
			delete(cells, plan.DefaultMarkColumn)
			all[fmt.Sprint(id, "/", place+1)] = cells
		}
	}
	return all
}

func numberOf(key string) (id string, number int64) {
	id, text, _ := strings.Cut(key, "/")
	number, _ = strconv.ParseInt(text, 10, 64)
	return id, number
}

func (m *drawnLoad) differs(want leftBySequence, table contents) string {
	return cmp.Diff(want.rows, m.left(table))
}

// judge compares the table and the counts after a load with what is expected.
func (m *drawnLoad) judge(r *Report, want leftBySequence) {
	t := m.t
	t.Helper()
	rows := m.w.rows()
	if diff := m.differs(want, rows); diff != "" {
		t.Errorf("the table differs from a sequential load (-want +got):\n%.5000s", diff)
	} else {
		for name, broken := range m.spoiled(rows) {
			conformance.True(t, m.differs(want, broken) != "", "a table with %s passes", name)
		}
	}
	rejected := int64(m.checkRejected(want))
	read := int64(len(m.records))
	conformance.True(t, r.State == StateFinished && r.Read == read && r.Rejected == rejected &&
		r.Written+r.Superseded+r.ConditionFailed == read-rejected,
		"%s: %d read, %d written, %d superseded, %d left, %d rejected; want %d read, %d rejected", r.State, r.Read, r.Written,
		r.Superseded, r.ConditionFailed, r.Rejected, read, rejected)
	if never := m.mode.leaves != lastRows; never && r.Superseded > 0 || r.ExtraVersions > 0 ||
		m.killed.attempts == 1 && r.ConditionFailed != want.left { // a row written before a kill and replaced is not counted
		t.Errorf("%d superseded, %d versions, %d left, want %d", r.Superseded, r.ExtraVersions, r.ConditionFailed, want.left)
	}
	conformance.Equal(t, checkpoint.Exists(m.cfg.RunDir), false, "a finished run has a checkpoint")
	_, err := os.Stat(filepath.Join(m.cfg.RunDir, rundir.StampsDir))
	conformance.True(t, os.IsNotExist(err), "the timestamps of a finished run are kept: %v", err)
	// The headers of files that were searched for key ranges are not counted when the files are read.
	least := m.bytes() - int64(len(drawnHeader)*len(m.cfg.Inputs))
	whole := m.killed.attempts == 1 && m.cfg.Limits.Records == 0 && m.bytes() > 0
	conformance.True(t, !whole || r.BytesRead <= m.bytes() && r.BytesRead >= least,
		"%d bytes read of %d", r.BytesRead, m.bytes())
	if m.mode.leaves == numberedRows {
		m.checkReturned(rows)
	}
	left, err := filepath.Glob(filepath.Join(m.w.dir, "tsimport-spill-*"))
	conformance.True(t, m.killed.attempts != 1 || err == nil && len(left) == 0, "%v is left behind: %v", left, err)
}

// bytes returns the size of all inputs; 0 if parts of one format are skipped.
func (m *drawnLoad) bytes() (sum int64) {
	for _, name := range m.cfg.Inputs {
		info, err := os.Stat(name)
		switch {
		case name == "-":
			sum += int64(len(m.stdin))
		case err != nil || strings.HasSuffix(name, ".parquet"):
			return 0
		default:
			sum += info.Size()
		}
	}
	return sum
}

func (m *drawnLoad) spoiled(rows contents) map[string]contents {
	if len(rows) == 0 {
		return map[string]contents{"a row too many": {"key00001/1": {"a": "1"}}}
	}
	keys := slices.Sorted(maps.Keys(rows))
	key := keys[len(keys)/2]
	changed := func(change func(cells map[string]string)) contents {
		other := maps.Clone(rows)
		other[key] = maps.Clone(rows[key])
		change(other[key])
		return other
	}
	broken := map[string]contents{}
	less := maps.Clone(rows)
	delete(less, key)
	broken["a row less"] = less
	twice := maps.Clone(rows)
	id, number := numberOf(key)
	twice[fmt.Sprint(id, "/", number+1_000_000_000)] = rows[key]
	broken["a row twice"] = twice
	for name := range m.left(contents{key: rows[key]})[cmpKey(m, key)] {
		broken["another "+name] = changed(func(cells map[string]string) { cells[name] += "0" })
		broken["no "+name] = changed(func(cells map[string]string) { delete(cells, name) })
		break
	}
	for _, other := range keys {
		if next, n := numberOf(other); m.mode.leaves == numberedRows && next == id && n != number {
			turned := maps.Clone(rows)
			turned[key], turned[other] = rows[other], rows[key]
			broken["two numbers in the wrong order"] = turned
			break
		}
	}
	return broken
}

// cmpKey returns the key that left gives to an id's only row.
func cmpKey(m *drawnLoad, key string) string {
	if m.mode.leaves == numberedRows {
		id, _ := numberOf(key)
		return id + "/1"
	}
	return key
}

// checkRejected checks that exactly the expected records are kept as rejected, each once, and returns their number.
func (m *drawnLoad) checkRejected(left leftBySequence) int {
	got := []string{}
	for _, line := range lines(m.t, filepath.Join(m.cfg.RunDir, rundir.ReasonsFile)) {
		var reason struct {
			File   string
			Record int64
		}
		conformance.MustEqual(m.t, json.Unmarshal([]byte(line), &reason), nil, "%s", line)
		got = append(got, fmt.Sprint(slices.Index(m.cfg.Inputs, reason.File), "/", reason.Record))
	}
	want := slices.DeleteFunc(append([]string{}, left.rejected...),
		func(name string) bool { return left.unsent[name] && !slices.Contains(got, name) })
	slices.Sort(want)
	slices.Sort(got)
	conformance.Equal(m.t, cmp.Diff(want, got), "", "rejected records, as file/record (-want +got)")
	kept := 0
	files := conformance.Try(filepath.Glob(filepath.Join(m.cfg.RunDir, "rejects*"))).Must(m.t)
	for _, name := range files {
		if !strings.HasSuffix(name, ".jsonl") && !strings.Contains(name, ".later-") { // neither reasons nor .later files
			kept += len(lines(m.t, name))
			if strings.HasSuffix(name, ".csv") {
				kept-- // the header is no record
			}
		}
	}
	conformance.True(m.t, kept == len(want), "%d records are kept in %q, want %d", kept, files, len(want))
	return len(want)
}

// checkReturned checks that the file of returned keys has the number of each record that became a row.
func (m *drawnLoad) checkReturned(rows contents) {
	numbers := map[string]int64{} // by column c
	for key, cells := range rows {
		_, numbers[cells["c"]] = numberOf(key)
	}
	want := []string{"file,record,id,seq"}
	for i := range m.records {
		if r := &m.records[i]; m.oracle.makesRow(r) && !m.oracle.refused(r) {
			want = append(want, fmt.Sprintf("%s,%d,%s,%d", m.cfg.Inputs[r.file], r.number, r.id, numbers[r.c]))
		}
	}
	wantReturned(m.t, want, m.cfg)
}

// hasBadFile reports whether one file of the load is made bad.
func (m *drawnLoad) hasBadFile() bool { return m.name == "bad file" || m.name == "numbered bad file" }

// runWithBadFile damages a file or gives it too many rejects. The others must be loaded, and the report must name it.
func (m *drawnLoad) runWithBadFile(before contents) {
	t, bad := m.t, m.rnd.IntN(len(m.cfg.Inputs))
	name := m.cfg.Inputs[bad]
	m.cfg.Limits.SetAside, m.cfg.Limits.MaxErrors = true, ledger.MaxErrors{Rows: 3}
	its := slices.DeleteFunc(slices.Clone(m.records), func(r drawnRecord) bool { return r.file != bad })
	switch kind := filepath.Ext(name); {
	case len(its) < 10:
		return // the file is too short
	case kind == ".parquet":
		damageParquet(t, name)
	case kind == ".gz":
		cutShort(t, name)
	default:
		for i := range m.records {
			r := &m.records[i]
			r.ragged = r.file == bad && r.number > len(its)/2
		}
		its = slices.DeleteFunc(slices.Clone(m.records), func(r drawnRecord) bool { return r.file != bad })
		text := drawnCSV(its)
		if kind == ".ndjson" {
			text = drawnLines(t, its[:len(its)/2]) + strings.Repeat("{\"id\": }\n", len(its)-len(its)/2)
		}
		must(t, os.WriteFile(name, []byte(text), 0o600))
		m.killed.keys = m.orderingKeys()
	}
	end := m.trouble()
	r := m.untilDone()
	end()
	conformance.MustTrue(t, r.State == StateFinished && r.ExitCode == exitcode.Rejects && len(r.BadInputs) == 1 &&
		r.BadInputs[0].Name == name && r.BadInputs[0].Reason != "",
		"%s, exit code %d, set aside: %v; want only %s", r.State, r.ExitCode, r.BadInputs, name)
	b := r.BadInputs[0]
	conformance.True(t, !b.Sent || m.mode.leaves == numberedRows, "%v: rows that were sent are not remembered", b)
	of := func(is bool) contents {
		return m.oracle.apply(contents{}, slices.DeleteFunc(slices.Clone(m.records),
			func(d drawnRecord) bool { return (d.file == bad) != is })).rows
	}
	others, rows, got := of(false), of(true), m.left(m.w.rows())
	maps.Copy(others, maps.Collect(func(yield func(string, map[string]string) bool) {
		for key, cells := range before {
			if _, written := others[key]; !written && !yield(key, cells) {
				return
			}
		}
	}))
	for key, cells := range got {
		if want, ok := rows[key]; ok {
			if _, stood := before[key]; !stood && !maps.Equal(cells, want) || stood && !maps.Equal(cells, want) &&
				!maps.Equal(cells, before[key]) {
				t.Errorf("row %s of the bad file is %v, want %v or none", key, cells, want)
			}
			delete(got, key)
			delete(others, key)
		}
	}
	for key := range rows {
		delete(others, key)
	}
	conformance.Equal(t, cmp.Diff(others, got), "", "the rows of the other files (-want +got)")
	m.t.Logf("%v: %d attempts, %s, %d read, in %d", m, m.killed.attempts, r.BadInputs[0].Reason, r.BadInputs[0].Read,
		r.Sections)
}
