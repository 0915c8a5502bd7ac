package tablesync

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/transfer/verify"
)

// Summary is the result of a run and the content of summary.json. RowsExpected = Equal + Missing + Different + Expired.
// Puts = Missing + Different; the number of their lines is Written + PutsRejected + ConditionFailed + PutsUnfinished.
// Surplus = Deleted + DeletesRejected + DeletesUnfinished + Kept. Its many fields are the JSON output.
type Summary struct {
	State    string `json:"state"`
	ExitCode int    `json:"exit_code"`
	Error    string `json:"error,omitempty"`
	Plan     bool   `json:"plan"` // a dry run

	Target     string    `json:"target"`
	Table      string    `json:"table"`
	Mode       string    `json:"mode"`
	RunDir     string    `json:"run_dir,omitempty"`
	Range      string    `json:"range,omitempty"`
	Command    string    `json:"command,omitempty"`
	Arguments  []string  `json:"arguments,omitempty"`
	Directory  string    `json:"directory,omitempty"`
	Inputs     []string  `json:"inputs"`
	Started    time.Time `json:"started"`
	First      time.Time `json:"first_started"`
	ComparedAt time.Time `json:"compared_at,omitzero"`
	Resumed    bool      `json:"resumed,omitempty"` // used the comparison of an earlier attempt
	source.Position

	// Units maps the table's columns to their units, as in the summary of a load.
	Units map[string]string `json:"units,omitempty"`

	Read         int64 `json:"read"`
	Rejected     int64 `json:"rejected"` // rejected by the comparison
	Superseded   int64 `json:"superseded"`
	OutOfRange   int64 `json:"out_of_range,omitempty"`
	RowsExpected int64 `json:"rows_expected"`
	RowsInTable  int64 `json:"rows_in_table"` // rows of the table that were compared
	Equal        int64 `json:"equal"`
	Missing      int64 `json:"missing"`
	Different    int64 `json:"different"`
	Expired      int64 `json:"expired,omitempty"`
	Surplus      int64 `json:"surplus"`
	OfRejects    int64 `json:"of_rejects,omitempty"` // table rows with the key of a rejected record; not surplus

	// Settled reports on rows that differed at first, if rows were reread.
	Settled *verify.Settled `json:"settled,omitempty"`

	Puts              int64  `json:"puts"`    // rows to put or update
	Deletes           int64  `json:"deletes"` // rows to delete
	Written           int64  `json:"written"`
	PutsRejected      int64  `json:"puts_rejected,omitempty"`
	PutsUnfinished    int64  `json:"puts_unfinished,omitempty"`
	ConditionFailed   int64  `json:"condition_failed,omitempty"` // rows to put that --when or --if-unchanged excluded
	IfUnchanged       bool   `json:"if_unchanged,omitempty"`
	Deleted           int64  `json:"deleted"`
	DeletesRejected   int64  `json:"deletes_rejected,omitempty"`
	DeletesUnfinished int64  `json:"deletes_unfinished,omitempty"`
	Kept              int64  `json:"kept"`               // surplus rows that were not deleted
	Withheld          string `json:"withheld,omitempty"` // why requested deletes were withheld

	Costs Costs `json:"costs"`

	RejectsFiles []string          `json:"rejects_files,omitempty"`
	Examples     []json.RawMessage `json:"examples"` // examples as in the result of a comparison
	Notes        []string          `json:"notes,omitempty"`
	// RejectReasons holds the reasons of records rejected by the comparison, the most frequent first.
	RejectReasons []rundir.ReasonCount `json:"reject_reasons,omitempty"`
	Seconds       float64              `json:"seconds"`

	PutLoad    *pipeline.Report `json:"put_load,omitempty"`
	DeleteLoad *pipeline.Report `json:"delete_load,omitempty"`
}

// Costs holds costs in capacity units. Future costs are estimated from row sizes, without secondary indexes.
type Costs struct {
	ReadCU     int64 `json:"read_cu"`             // charged for reading the table
	SourceCU   int64 `json:"source_cu,omitempty"` // charged for reading a source table
	PutCU      int64 `json:"put_cu"`              // estimated cost of the puts
	DeleteCU   int64 `json:"delete_cu"`           // estimated cost of the deletes
	FullLoadCU int64 `json:"full_load_cu"`        // estimated cost of loading all rows
	WriteCU    int64 `json:"write_cu"`            // charged for writing
}

func (s *Summary) enter(cfg *Config, st *state) {
	r := st.Found
	s.ComparedAt = st.Compared
	s.Read, s.Rejected, s.Superseded, s.OutOfRange = r.Read, r.Rejected, r.Superseded, r.OutOfRange
	s.RowsExpected, s.RowsInTable, s.Equal, s.Missing, s.Different = r.RowsExpected, r.RowsInTable, r.Equal, r.Missing,
		r.Different
	s.Expired, s.Surplus, s.OfRejects = r.Expired, r.Extra, r.OfRejects
	s.Position, s.Settled = r.Position, r.Settled
	s.Examples, s.Notes, s.RejectsFiles = append(s.Examples, st.Examples...), r.Notes, st.Rejects
	s.RejectReasons, s.Units = st.Reasons, st.ColumnUnits
	s.Puts, s.Kept, s.PutsUnfinished = r.Missing+r.Different, r.Extra, st.Total.Lines
	s.Costs = Costs{ReadCU: r.ReadCU, SourceCU: st.SourceUnits, PutCU: st.Total.PutUnits, FullLoadCU: st.Units}
	if !cfg.Delete {
		return
	}
	if s.Withheld = withheld(cfg, st); s.Withheld == "" {
		s.Deletes, s.Kept, s.DeletesUnfinished = st.Found.Extra, 0, st.Found.Extra
		s.Costs.DeleteCU = st.Total.DeleteUnits
	}
}

// withheld returns why no row may be deleted after a comparison, or "" if rows may be deleted.
func withheld(cfg *Config, st *state) string {
	r := st.Found
	switch {
	case r.Rejected == 1:
		return "1 record of the inputs was rejected"
	case r.Rejected > 0:
		return fmt.Sprintf("%d records of the inputs were rejected", r.Rejected)
	case len(st.Unread) > 0:
		return "not all inputs count: " + strings.Join(st.Unread[:min(len(st.Unread), 3)], "; ")
	case r.Read == 0:
		return "the inputs have no records"
	case cfg.MaxDelete.Share && float64(r.Extra)*100 > cfg.MaxDelete.Percent*float64(r.RowsInTable):
		return fmt.Sprintf("%d of the %d rows that were compared are surplus, more than --max-delete %g%% allows", r.Extra,
			r.RowsInTable, cfg.MaxDelete.Percent)
	case !cfg.MaxDelete.Share && r.Extra > cfg.MaxDelete.Rows:
		return fmt.Sprintf("%d rows are surplus, more than --max-delete %d allows", r.Extra, cfg.MaxDelete.Rows)
	}
	return ""
}

func (s *Summary) put(r *pipeline.Report) {
	s.PutLoad = r
	s.Written, s.PutsRejected, s.ConditionFailed = r.Written+r.Superseded, r.Rejected, r.ConditionFailed
	s.PutsUnfinished -= s.Written + s.PutsRejected + s.ConditionFailed
	s.Costs.WriteCU += r.WriteCU
}

func (s *Summary) delete(r *pipeline.Report) {
	s.DeleteLoad = r
	s.Deleted, s.DeletesRejected = r.Written+r.Superseded, r.Rejected
	s.DeletesUnfinished -= s.Deleted + s.DeletesRejected
	s.Costs.WriteCU += r.WriteCU
}

// balance returns an error unless each row has exactly one outcome.
func (s *Summary) balance() error {
	var errs []error
	if sum := s.Equal + s.Missing + s.Different + s.Expired; sum != s.RowsExpected {
		errs = append(errs, fmt.Errorf("the counts do not balance: %d rows expected, but %d compared", s.RowsExpected, sum))
	}
	if s.PutsUnfinished < 0 || s.DeletesUnfinished < 0 {
		errs = append(errs, errors.New("the counts do not balance: more rows were written or deleted than planned"))
	}
	if sum := s.Deleted + s.DeletesRejected + s.DeletesUnfinished + s.Kept; sum != s.Surplus {
		errs = append(errs, fmt.Errorf("the counts do not balance: %d surplus rows, but %d deleted or kept", s.Surplus, sum))
	}
	return errors.Join(errs...)
}

func (s *Summary) conclude() {
	s.State, s.ExitCode = pipeline.StateFinished, exitcode.OK
	if s.Rejected > 0 || s.IfUnchanged && s.ConditionFailed > 0 || s.PutsRejected > 0 || s.DeletesRejected > 0 ||
		s.Withheld != "" {
		s.ExitCode = exitcode.Rejects
	}
}

func ReadSummary(dir string) (*Summary, error) {
	s := new(Summary)
	return s, rundir.ReadSummary(dir, s)
}
