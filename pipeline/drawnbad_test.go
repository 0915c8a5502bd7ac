package pipeline

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/pipeline/ledger"
)

// hasBadFile reports whether one file of the load is to be bad.
func (m *drawnLoad) hasBadFile() bool { return m.name == "bad file" || m.name == "numbered bad file" }

// runWithBadFile damages one of the files, or gives it more rejected rows than each may have. The load has to finish with the rows of all
// others and no wrong ones, and to name the file, through kills and faults.
func (m *drawnLoad) runWithBadFile(before contents) {
	t, bad := m.t, m.rnd.IntN(len(m.cfg.Inputs))
	name := m.cfg.Inputs[bad]
	m.cfg.Limits.SetAside, m.cfg.Limits.MaxErrors = true, ledger.MaxErrors{Rows: 3}
	its := slices.DeleteFunc(slices.Clone(m.records), func(r drawnRecord) bool { return r.file != bad })
	switch kind := filepath.Ext(name); {
	case len(its) < 10:
		return // there is too little of it
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
	if r.State != StateFinished || r.ExitCode != exitcode.Rejects || len(r.BadInputs) != 1 || r.BadInputs[0].Name != name || r.BadInputs[0].Reason == "" {
		t.Fatalf("%s, exit code %d, set aside: %v; want only %s", r.State, r.ExitCode, r.BadInputs, name)
	}
	if b := r.BadInputs[0]; b.Sent && m.mode.leaves != numberedRows {
		t.Errorf("%v: rows that may be sent twice are not remembered as sent", b)
	}
	of := func(is bool) contents {
		return m.oracle.apply(contents{}, slices.DeleteFunc(slices.Clone(m.records), func(d drawnRecord) bool { return (d.file == bad) != is })).rows
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
			if _, stood := before[key]; !stood && !maps.Equal(cells, want) || stood && !maps.Equal(cells, want) && !maps.Equal(cells, before[key]) {
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
	m.t.Logf("%v: %d attempts, %s, %d read, %d sections", m, m.killed.attempts, r.BadInputs[0].Reason, r.BadInputs[0].Read, r.Sections)
}
