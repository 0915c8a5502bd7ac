package restore

import (
	"testing"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
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
}
