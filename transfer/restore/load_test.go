package restore

import (
	"errors"
	"slices"
	"testing"
	"time"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/tabletest"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
	archive "example.com/tsimport/reader/archivefile"
)

func TestMain(m *testing.M) { conformance.Main(m) }

// A table that cannot be described may hold rows, or keep fewer versions than the archive has.
func TestTargetThatCannotBeDescribedIsNotTakenForANewTable(t *testing.T) {
	s := tabletest.Open(t, server.Options{Faults: &faults.Plan{
		Only:   func(operation string) bool { return operation == "DescribeTable" },
		Decide: func(faults.Request) faults.Fault { return faults.Fault{Action: faults.Refuse, Code: "OTSAuthFailed"} }}})
	m := &archive.Manifest{Table: "t", Key: []table.KeyColumn{{Name: "id", Type: table.Integer}}}
	l := conformance.Try(New(m, new(options.Request), words.Say(nil))).Must(t)
	cfg := &pipeline.Config{Target: plan.Target{Table: "t", Create: true, Client: s.Target}}
	conformance.Refused(t, l.Begin(t.Context(), cfg, &s.Target, false), "OTSAuthFailed", "error")
	conformance.Equal(t, len(cfg.Target.Key), 0, "columns of the key of a new table")
	w := conformance.Try(archive.Exact.Open(t.TempDir()+"/a", false)).Must(t)
	conformance.Must(t, errors.Join(w.Begin(archive.Subject{Table: "t", Key: m.Key, Ranges: []string{"all"}}), w.End(0)))
	l.Archive = conformance.Try(w.Finish(archive.Manifest{})).Must(t)
	conformance.Must(t, w.Close())
	auto := append(slices.Clone(m.Key), table.KeyColumn{Name: "n", Type: table.Integer, Auto: true})
	l.Archive.Versions, l.Archive.Columns = 2, []string{plan.DefaultMarkColumn}
	conformance.Refused(t, l.check(cfg, nil, &client.Table{Key: m.Key}, time.Now()), "cells with 2 versions", "error")
	conformance.Refused(t, l.check(cfg, nil, &client.Table{Key: auto}, time.Now()), "needed for marks", "error")
}
