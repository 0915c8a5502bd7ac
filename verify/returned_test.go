package verify

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"tsimport/internal/extsort"
	"tsimport/internal/spill"
	"tsimport/internal/table"
	"tsimport/pipeline/intake"
	"tsimport/pipeline/plan"
)

// TestRecordsAreComparedUnderTheKeysThatTheServiceHasMade compares a table that numbers its rows, with files of returned keys.
func TestRecordsAreComparedUnderTheKeysThatTheServiceHasMade(t *testing.T) {
	w := newWorld(t)
	const name = "numbered"
	key := []table.KeyColumn{{Name: "id", Type: table.String}, {Name: "seq", Type: table.Integer, Auto: true}}
	must(t, w.admin.Create(name, key, table.Definition{TimeToLive: -1, MaxVersions: 1}))
	const text = "id,n\na,1\na,2\nb,3\nc,x\n"
	cfg := w.config(t, name, text)
	cfg.Request.Columns.Types["n"] = plan.Type{Type: table.Integer}
	input := cfg.Request.Inputs[0]
	line := func(record int, id, seq any) string { return fmt.Sprintf("%s,%d,%v,%v\n", input, record, id, seq) }
	var lines []string
	var seqs []int64
	for i, id := range []string{"a", "a", "b"} {
		put := &tablestore.PutRowChange{TableName: name, PrimaryKey: new(tablestore.PrimaryKey)}
		put.PrimaryKey.AddPrimaryKeyColumn("id", id)
		put.PrimaryKey.AddPrimaryKeyColumnWithAutoIncrement("seq")
		put.SetCondition(tablestore.RowExistenceExpectation_IGNORE)
		put.SetReturnPk()
		put.AddColumn("n", int64(i+1))
		res, err := w.sdk.PutRow(&tablestore.PutRowRequest{PutRowChange: put})
		must(t, err)
		seqs = append(seqs, res.PrimaryKey.PrimaryKeys[1].Value.(int64))
		lines = append(lines, line(i+1, id, seqs[i]))
	}
	const header = "file,record,id,seq\n"
	all := lines[0] + lines[1] + lines[2]
	for what, c := range map[string]struct {
		file string
		want string // the counts, or a part of the error
		ok   bool
		note string
	}{
		"all":                     {header + all, "equal 3, missing 0, different 0, extra 0, without 0", true, ""},
		"in another order":        {header + lines[2] + lines[0] + lines[1], "equal 3, missing 0, different 0, extra 0, without 0", true, ""},
		"two records change keys": {header + line(1, "a", seqs[1]) + line(2, "a", seqs[0]) + lines[2], "equal 1, missing 0, different 2, extra 0, without 0", false, ""},
		"the first is not there":  {header + lines[1] + lines[2], "equal 2, missing 0, different 0, extra 1, without 1", false, ""},
		"the last is not there":   {header + lines[0] + lines[1], "equal 2, missing 0, different 0, extra 1, without 1", false, ""},
		"none":                    {header, "equal 0, missing 0, different 0, extra 3, without 3", false, ""},
		"one was never answered":  {header + lines[0] + line(2, "a", "") + lines[2], "equal 2, missing 0, different 0, extra 1, without 1", false, ""},
		"a row that is gone":      {header + lines[0] + lines[1] + line(3, "b", 1<<60), "equal 2, missing 1, different 0, extra 1, without 0", false, ""},
		"others of other inputs":  {header + "x.csv,1,a,5\n" + all + "x.csv,2,a,6\n", "equal 3, missing 0, different 0, extra 0, without 0", true, "2 keys in"},
		"another header":          {"file,record,id,n\n" + all, "its header is", false, ""},
		"half a header":           {"\"file", "--returned-keys", false, ""},
		"nothing":                 {"", "its header is", false, ""},
		"a record that is none":   {header + lines[0] + strings.Replace(lines[1], ",2,", ",two,", 1) + lines[2], "line 3", false, ""},
		"a number that is none":   {header + all + line(4, "c", "x"), "line 5: column seq", false, ""},
		"a line that is cut":      {header + lines[0] + input + ",2,a\n", "--returned-keys", false, ""},
		"a key of another record": {header + lines[0] + lines[1] + line(3, "c", seqs[2]), "the input has changed since it was loaded", false, ""},
	} {
		cfg.Returned = filepath.Join(w.dir, "returned.csv")
		must(t, os.WriteFile(cfg.Returned, []byte(c.file), 0o600))
		r, err := Run(t.Context(), cfg)
		if err != nil {
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %s", what, err, c.want)
			}
			continue
		}
		got := fmt.Sprintf("equal %d, missing %d, different %d, extra %d, without %d", r.Equal, r.Missing, r.Different, r.Extra, r.WithoutKey)
		if got != c.want || r.OK != c.ok || r.Rejected != 1 || !strings.Contains(strings.Join(r.Notes, "; "), c.note) || c.note == "" && len(r.Notes) > 0 {
			t.Errorf("%s: %s, ok %v, %d rejected, notes %q; want %s", what, got, r.OK, r.Rejected, r.Notes, c.want)
		}
	}
	cfg.Returned += ".missing"
	if _, err := Run(t.Context(), cfg); err == nil {
		t.Error("without the file: no error")
	}
}

// TestTheKeyOfARejectThatCannotBeKeptIsAnError: without the key, a sync would delete the row of a rejected record.
func TestTheKeyOfARejectThatCannotBeKeptIsAnError(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "disk")
	must(t, os.Mkdir(dir, 0o700))
	sorter, err := extsort.New(extsort.Options{Memory: 1, Spill: spill.Options{Dir: dir}})
	must(t, err)
	defer sorter.Close()
	v := &verifier{cfg: &Config{Changes: &told{at: -1}}, plan: new(plan.Plan), recordsOf: make([]int64, 1)}
	parsed := &intake.Parsed{Split: new(table.Split), Records: 2}
	for range 2 {
		parsed.Rejects = append(parsed.Rejects, intake.Reject{Key: make([]byte, 8<<10)})
	}
	if err := os.RemoveAll(dir); err != nil { // what does not fit in memory cannot be written
		t.Fatal(err)
	}
	if err := v.takeRejects(parsed, sorter); err == nil {
		t.Error("no error")
	}
	v.cfg.Changes = &told{at: 1}
	if err := v.takeRejects(&intake.Parsed{Split: parsed.Split, Apart: intake.Apart{Rejects: make([]intake.Reject, 2)}}, sorter); !errors.Is(err, errTold) {
		t.Errorf("the second reject cannot be kept: %v", err)
	}
}
