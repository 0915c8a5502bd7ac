package writer

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore/otsprotocol"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/condition"
	"example.com/tsimport/internal/tablestore/encode"
)

// result is a fake service's answer for a row.
type result struct {
	code  string // "" means success
	units int
	key   []byte // returned PlainBuffer bytes
}

// fake is a service with scripted answers.
type fake struct {
	write    func(rows [][]byte) ([]result, error)
	answer   func(rows [][]byte) []byte // used instead of write: returns the bytes of the answer
	get      func(*tablestore.GetRowRequest) (*tablestore.GetRowResponse, error)
	requests int
}

func (f *fake) Post(operation string, appendBody func([]byte) []byte) ([]byte, error) {
	f.requests++
	rows := rowsOf(appendBody(nil))
	if f.answer != nil {
		return f.answer(rows), nil
	}
	results, err := f.write(rows)
	if err != nil {
		return nil, err
	}
	return encodeAnswer("t", results), nil
}

func (f *fake) GetRow(r *tablestore.GetRowRequest) (*tablestore.GetRowResponse, error) {
	return f.get(r)
}

// rowsOf returns the PlainBuffer bytes of a request's rows.
func rowsOf(body []byte) (rows [][]byte) {
	req := new(otsprotocol.BatchWriteRowRequest)
	conformance.Must(conformance.Sure{}, proto.Unmarshal(body, protoadapt.MessageV2Of(req)))
	for _, r := range req.Tables[0].Rows {
		rows = append(rows, r.RowChange)
	}
	return rows
}

func encodeAnswer(name string, results []result) []byte {
	t := &otsprotocol.TableInBatchWriteRowResponse{TableName: &name}
	for _, r := range results {
		row := &otsprotocol.RowInBatchWriteRowResponse{IsOk: proto.Bool(r.code == "")}
		row.Row = r.key
		if r.code == "" {
			row.Consumed = &otsprotocol.ConsumedCapacity{CapacityUnit: &otsprotocol.CapacityUnit{Read: proto.Int32(0),
				Write: proto.Int32(int32(r.units))}}
		} else {
			row.Error = &otsprotocol.Error{Code: &r.code, Message: proto.String("why")}
		}
		t.Rows = append(t.Rows, row)
	}
	return conformance.Try(proto.Marshal(protoadapt.MessageV2Of(
		&otsprotocol.BatchWriteRowResponse{Tables: []*otsprotocol.TableInBatchWriteRowResponse{t}}))).Must(conformance.Sure{})
}

var schema = &table.Schema{Table: "t", Key: []table.KeyColumn{{Name: "id", Type: table.Integer}},
	Columns: []table.Column{{Name: "id", Type: table.Integer}, {Name: "v", Type: table.String},
		{Name: "n", Type: table.Double}}}

func num(v int64) table.Value  { return table.Value{Type: table.Integer, Int: v} }
func str(s string) table.Value { return table.Value{Type: table.String, Bytes: []byte(s)} }

// batch returns n rows with the keys 0 to n−1, and the other arguments of Write.
func batch(t *testing.T, n int, mode table.Mode) ([]table.Ref, []bool, []table.Outcome) {
	t.Helper()
	b, e := new(table.Block), encode.New(schema, mode, false)
	var refs []table.Ref
	for i := range n {
		conformance.MustEqual(t, e.Append(b, []table.Value{num(int64(i)), str("v"), {}}, nil, table.Span{}, nil), nil, "why")
		refs = append(refs, table.Ref{Block: b, Index: int32(i)})
	}
	return refs, make([]bool, n), make([]table.Outcome, n)
}

func ok(n int) (results []result) {
	for range n {
		results = append(results, result{units: 2})
	}
	return results
}

func failed(code string) result { return result{code: code} }

func each(r result) func([][]byte) ([]result, error) {
	return func(rows [][]byte) ([]result, error) { return slices.Repeat([]result{r}, len(rows)), nil }
}

// storedRow returns the service's answer to the reading of a row with the given columns.
func storedRow(id int64, columns ...*tablestore.AttributeColumn) *tablestore.GetRowResponse {
	res := &tablestore.GetRowResponse{Columns: columns}
	res.PrimaryKey.PrimaryKeys = []*tablestore.PrimaryKeyColumn{{ColumnName: "id", Value: id}}
	return res
}

func TestEachRowGetsItsOwnOutcome(t *testing.T) {
	codes := []string{"", "OTSNotEnoughCapacityUnit", "OTSPartitionUnavailable", "OTSTimeout", "OTSConditionCheckFail",
		"OTSInvalidPK", "OTSNobodyKnows", "OTSParameterInvalid"}
	want := []table.Fate{table.Written, table.Again, table.Again, table.Unknown, table.Refused, table.Refused,
		table.Unknown, table.Refused}
	f := &fake{write: func(rows [][]byte) ([]result, error) {
		results := ok(len(rows))
		for i, c := range codes {
			if c != "" {
				results[i] = failed(c)
			}
		}
		return results, nil
	}}
	rows, repeated, outcomes := batch(t, len(codes), table.Put)
	stats, err := New(f, f, "t", table.Put, table.Ignore).Write(rows, repeated, outcomes)
	conformance.MustTrue(t, err == nil && stats.Requests == 1, "%v, %+v", err, stats)
	for i, o := range outcomes {
		conformance.True(t, o.Fate == want[i] && o.Code == codes[i] && o.Throttled == (i == 1), "%q: %+v", codes[i], o)
	}
	conformance.Equal(t, outcomes[0].WriteCU, 2, "capacity units")
}

func TestMeaninglessAnswersLeaveRowsUnknown(t *testing.T) {
	for name, write := range map[string]func([][]byte) ([]result, error){
		"no results":       func([][]byte) ([]result, error) { return nil, nil },
		"too few results":  func(rows [][]byte) ([]result, error) { return ok(len(rows) - 1), nil },
		"too many results": func(rows [][]byte) ([]result, error) { return ok(len(rows) + 1), nil },
		"a cut connection": func([][]byte) ([]result, error) { return nil, errors.New("EOF") },
		"an undecodable 5xx": func([][]byte) ([]result, error) {
			return nil, &tablestore.OtsError{Code: "OTSServerUnavailable", Message: "<html>", HttpStatusCode: 502}
		},
	} {
		rows, repeated, outcomes := batch(t, 3, table.Put)
		_, err := New(&fake{write: write}, nil, "t", table.Put, table.Ignore).Write(rows, repeated, outcomes)
		conformance.True(t, err == nil, "%s: %v", name, err)
		for _, o := range outcomes {
			conformance.Equal(t, o.Fate, table.Unknown, "%s: %+v", name, o)
		}
	}
}

func TestUndocumentedRowCodeIsRetriedThenRejected(t *testing.T) {
	f := &fake{write: func(rows [][]byte) ([]result, error) {
		return append(ok(len(rows)-1), failed("OTSNobodyKnows")), nil
	}}
	rows, repeated, outcomes := batch(t, 3, table.Put)
	w := New(f, f, "t", table.Put, table.Ignore)
	_, err := w.Write(rows, repeated, outcomes)
	conformance.True(t, err == nil && outcomes[2].Fate == table.Unknown, "%+v, %v", outcomes[2], err)
	repeated[2] = true
	_, err = w.Write(rows, repeated, outcomes)
	conformance.True(t, err == nil && outcomes[2].Fate == table.Refused && outcomes[2].MaybeApplied &&
		strings.Contains(outcomes[2].Message, "may have been written"), "%+v, %v", outcomes[2], err)
}

// A refused row may have been written by an earlier attempt whose answer was lost.
func TestRefusalAfterLostAnswerIsDoubted(t *testing.T) {
	f := &fake{write: each(failed("OTSParameterInvalid"))}
	for _, lost := range []bool{false, true} {
		rows, repeated, outcomes := batch(t, 1, table.Put)
		repeated[0] = lost
		_, err := New(f, f, "t", table.Put, table.Ignore).Write(rows, repeated, outcomes)
		conformance.True(t, err == nil && outcomes[0].Fate == table.Refused && outcomes[0].MaybeApplied == lost &&
			strings.Contains(outcomes[0].Message, "may have been applied") == lost, "%+v, %v", outcomes[0], err)
	}
}

func TestUndocumentedBatchCodeStops(t *testing.T) {
	f := &fake{write: each(failed("OTSNobodyKnows"))}
	for _, again := range []bool{false, true} {
		rows, repeated, outcomes := batch(t, 3, table.Put)
		repeated[0], repeated[1], repeated[2] = again, again, again
		_, err := New(f, f, "t", table.Put, table.Ignore).Write(rows, repeated, outcomes)
		conformance.Refused(t, err, "OTSNobodyKnows", "repeated %v", again)
		for _, o := range outcomes {
			conformance.Equal(t, o.Fate, table.Unknown, "repeated %v: %+v", again, o)
		}
	}
}

func TestAnswerWithoutServiceCodeIsUnknown(t *testing.T) {
	for _, tt := range []struct {
		status    int
		code      string
		throttled bool
	}{{200 + 107, tablestore.OTS_CLIENT_UNKNOWN, false}, {403, tablestore.OTS_CLIENT_UNKNOWN, false},
		{404, tablestore.OTS_CLIENT_UNKNOWN, false}, {429, tablestore.OTS_CLIENT_UNKNOWN, true},
		{429, "Throttling.User", true}, {400, "Throttling.User", false}, {500, "Whatever", false}} {
		f := &fake{write: func([][]byte) ([]result, error) {
			return nil, &tablestore.OtsError{HttpStatusCode: tt.status, Code: tt.code, Message: "<html>"}
		}}
		rows, repeated, outcomes := batch(t, 3, table.Put)
		_, err := New(f, f, "t", table.Put, table.Ignore).Write(rows, repeated, outcomes)
		conformance.True(t, err == nil, "HTTP %d %s: %v", tt.status, tt.code, err)
		for _, o := range outcomes {
			conformance.Equal(t, o.Fate, table.Unknown, "HTTP %d %s: fate", tt.status, tt.code)
			conformance.Equal(t, o.Throttled, tt.throttled, "HTTP %d %s: throttled", tt.status, tt.code)
		}
	}
}

func TestBusyServerMayHaveWrittenNumberedRows(t *testing.T) {
	for _, code := range []string{"OTSServerBusy", "OTSNotEnoughCapacityUnit"} {
		for _, whole := range []bool{false, true} {
			f := &fake{write: each(failed(code))}
			if whole {
				f.write = func([][]byte) ([]result, error) { return nil, &tablestore.OtsError{HttpStatusCode: 503, Code: code} }
			}
			for _, numbered := range []bool{false, true} {
				rows, repeated, outcomes := batch(t, 2, table.Put)
				w := New(f, f, "t", table.Put, table.Ignore)
				want := table.Again
				if numbered {
					w.With(Options{AutoIncrement: NewAutoIncrement(nil, "t", 1, "", table.Marker{})})
					if code == "OTSServerBusy" {
						want = table.Unknown
					}
				}
				if _, err := w.Write(rows, repeated, outcomes); err != nil || outcomes[1].Fate != want || !outcomes[1].Throttled {
					t.Errorf("%s, whole %v, numbered %v: %+v, %v", code, whole, numbered, outcomes[1], err)
				}
			}
		}
	}
}

func TestRefusedRequestIsHalvedToBadRows(t *testing.T) {
	for _, n := range []int{1, 2, 3, 199, 200} {
		for _, bad := range [][]int{{0}, {n - 1}, {0, n - 1}, {n / 2}} {
			rows, repeated, outcomes := batch(t, n, table.Put)
			isBad := map[string]bool{}
			for _, i := range bad {
				isBad[string(rows[i].Body())] = true
			}
			f := &fake{}
			f.write = func(bodies [][]byte) ([]result, error) {
				for _, b := range bodies {
					if isBad[string(b)] {
						return nil, &tablestore.OtsError{Code: "OTSParameterInvalid", Message: "bad", HttpStatusCode: 400}
					}
				}
				return ok(len(bodies)), nil
			}
			stats, err := New(f, f, "t", table.Put, table.Ignore).Write(rows, repeated, outcomes)
			conformance.MustTrue(t, err == nil && stats.Requests == f.requests, "%v, %+v, %d requests", err, stats, f.requests)
			for i, o := range outcomes {
				conformance.Equal(t, o.Fate == table.Refused, isBad[string(rows[i].Body())], "%d, bad %v: row %d: %+v",
					n, bad, i, o)
			}
		}
	}
}

func TestFatalAnswerStopsHalving(t *testing.T) {
	f := &fake{}
	f.write = func(bodies [][]byte) ([]result, error) {
		if len(bodies) > 2 {
			return nil, &tablestore.OtsError{Code: "OTSParameterInvalid", HttpStatusCode: 400}
		}
		return nil, &tablestore.OtsError{Code: "OTSAuthFailed", HttpStatusCode: 403}
	}
	rows, repeated, outcomes := batch(t, 8, table.Put)
	_, err := New(f, f, "t", table.Put, table.Ignore).Write(rows, repeated, outcomes)
	conformance.True(t, err != nil, "no error")
	for i, o := range outcomes {
		conformance.Equal(t, o.Fate, table.Again, "row %d: %+v", i, o)
	}
}

// unread is a service that refuses reads.
type unread struct{ asked int }

func (u *unread) GetRow(*tablestore.GetRowRequest) (*tablestore.GetRowResponse, error) {
	u.asked++
	return nil, &tablestore.OtsError{HttpStatusCode: 403, Code: "OTSNoPermissionAccess", Message: "no permission"}
}

func TestMissingReadPermissionStopsAtOnce(t *testing.T) {
	f := &fake{write: each(failed("OTSConditionCheckFail"))}
	reader := new(unread)
	rows, repeated, outcomes := batch(t, 3, table.Put)
	repeated[0], repeated[1], repeated[2] = true, true, true
	_, err := New(f, reader, "t", table.Put, table.ExpectNotExist).Write(rows, repeated, outcomes)
	conformance.True(t, err != nil && strings.Contains(err.Error(), "ots:GetRow") &&
		strings.Contains(err.Error(), "OTSNoPermissionAccess") && reader.asked == 1, "%v, asked %d times", err, reader.asked)
	for i, o := range outcomes {
		conformance.Equal(t, o.Fate, table.Unknown, "row %d: %+v", i, o)
	}
}

func TestOwnAttemptFailingConditionIsNotAReject(t *testing.T) {
	same := &tablestore.AttributeColumn{ColumnName: "v", Value: "v"}
	for _, tt := range []struct {
		name      string
		mode      table.Mode
		condition table.Existence
		repeated  bool
		get       *tablestore.GetRowResponse
		err       error
		want      table.Fate
	}{
		{"not tried before", table.Put, table.ExpectNotExist, false, nil, nil, table.Refused},
		{"the row is ours", table.Put, table.ExpectNotExist, true, storedRow(0, same), nil, table.Written},
		{"an update's row is ours", table.Update, table.ExpectNotExist, true, storedRow(0, same), nil, table.Written},
		{"another value", table.Put, table.ExpectNotExist, true,
			storedRow(0, &tablestore.AttributeColumn{ColumnName: "v", Value: "w"}), nil, table.Refused},
		{"another type", table.Put, table.ExpectNotExist, true,
			storedRow(0, &tablestore.AttributeColumn{ColumnName: "v", Value: []byte("v")}), nil, table.Refused},
		{"a column more", table.Put, table.ExpectNotExist, true,
			storedRow(0, same, &tablestore.AttributeColumn{ColumnName: "x", Value: "v"}), nil, table.Refused},
		{"a column less", table.Put, table.ExpectNotExist, true, storedRow(0), nil, table.Refused},
		{"a version more", table.Put, table.ExpectNotExist, true, storedRow(0, same, same), nil, table.Refused},
		{"gone meanwhile", table.Put, table.ExpectNotExist, true, &tablestore.GetRowResponse{}, nil, table.Refused},
		{"cannot be read back", table.Put, table.ExpectNotExist, true, nil, errors.New("EOF"), table.Unknown},
		{"a put of a missing row", table.Put, table.ExpectExist, true, nil, nil, table.Refused},
		{"a delete that may be done", table.Delete, table.ExpectExist, true, nil, nil, table.Refused},
	} {
		f := &fake{write: each(failed("OTSConditionCheckFail")),
			get: func(*tablestore.GetRowRequest) (*tablestore.GetRowResponse, error) { return tt.get, tt.err }}
		rows, repeated, outcomes := batch(t, 1, tt.mode)
		repeated[0] = tt.repeated
		conformance.Must(t, conformance.ErrorOf(New(f, f, "t", tt.mode, tt.condition).Write(rows, repeated, outcomes)))
		conformance.Equal(t, outcomes[0].Fate, tt.want, "%s: %+v", tt.name, outcomes[0])
	}
}

// TestUnmetConditionAfterLostAnswerIsReadBack: the earlier attempt may be why the condition of --when is not met.
func TestUnmetConditionAfterLostAnswerIsReadBack(t *testing.T) {
	column := func(name, value string, at int64) *tablestore.AttributeColumn {
		return &tablestore.AttributeColumn{ColumnName: name, Value: value, Timestamp: at}
	}
	when := conformance.Try(condition.ParseWhen("stored.v < new.v")).Must(t)
	ours, older := column("v", "v", 9), column("v", "a", 8)
	for name, tt := range map[string]struct {
		mode  table.Mode
		get   *tablestore.GetRowResponse
		want  table.Fate
		unmet bool
	}{
		"a put stands":                     {table.Put, storedRow(0, ours), table.Written, false},
		"a put leaves no other column":     {table.Put, storedRow(0, ours, column("x", "v", 9)), table.Refused, true},
		"a put leaves no other version":    {table.Put, storedRow(0, ours, older), table.Refused, true},
		"an update leaves other columns":   {table.Update, storedRow(0, ours, column("x", "v", 9)), table.Written, false},
		"an update leaves older versions":  {table.Update, storedRow(0, ours, older), table.Written, false},
		"another row passed the condition": {table.Update, storedRow(0, column("v", "w", 9)), table.Refused, true},
		"the row was deleted":              {table.Put, new(tablestore.GetRowResponse), table.Refused, true},
		"the row cannot be read":           {table.Put, nil, table.Unknown, false},
	} {
		f := &fake{write: each(failed("OTSConditionCheckFail")),
			get: func(*tablestore.GetRowRequest) (*tablestore.GetRowResponse, error) {
				if tt.get == nil {
					return nil, errors.New("EOF")
				}
				return tt.get, nil
			}}
		rows, repeated, outcomes := batch(t, 1, tt.mode)
		repeated[0] = true
		w := New(f, f, "t", tt.mode, table.Ignore).With(Options{When: when})
		conformance.Must(t, conformance.ErrorOf(w.Write(rows, repeated, outcomes)))
		conformance.True(t, outcomes[0].Fate == tt.want && outcomes[0].Unmet == tt.unmet, "%s: %+v", name, outcomes[0])
	}
}

func TestReadBackComparesTimestamps(t *testing.T) {
	for at, want := range map[int64]table.Fate{7000: table.Written, 7001: table.Refused} {
		b, e := new(table.Block), encode.New(schema, table.Put, false)
		conformance.MustEqual(t, e.Append(b, []table.Value{num(0), str("v"), {}}, []int64{-1, 7000, -1}, table.Span{}, nil),
			nil, "")
		res := storedRow(0, &tablestore.AttributeColumn{ColumnName: "v", Value: "v", Timestamp: at})
		f := &fake{write: each(failed("OTSConditionCheckFail")),
			get: func(*tablestore.GetRowRequest) (*tablestore.GetRowResponse, error) { return res, nil }}
		outcomes := make([]table.Outcome, 1)
		_, err := New(f, f, "t", table.Put, table.ExpectNotExist).Write([]table.Ref{{Block: b}}, []bool{true}, outcomes)
		conformance.True(t, err == nil && outcomes[0].Fate == want, "stored at %d: %+v, %v", at, outcomes[0], err)
	}
}

// Each of five rows whose conditions fail gets its own outcome, even if one is in another state than the rest.
func TestRowsAreReadBackSeparately(t *testing.T) {
	type state struct {
		name string
		get  func(id int64) (*tablestore.GetRowResponse, error)
		want table.Fate
	}
	stored := func(id int64, v string) *tablestore.GetRowResponse {
		return storedRow(id, &tablestore.AttributeColumn{ColumnName: "v", Value: v})
	}
	states := []state{
		{"ours", func(id int64) (*tablestore.GetRowResponse, error) { return stored(id, "v"), nil }, table.Written},
		{"another's", func(id int64) (*tablestore.GetRowResponse, error) { return stored(id, "w"), nil }, table.Refused},
		{"not served now", func(int64) (*tablestore.GetRowResponse, error) {
			return nil, &tablestore.OtsError{Code: "OTSServerBusy", HttpStatusCode: 503}
		}, table.Unknown},
		{"an answer that is broken", func(int64) (*tablestore.GetRowResponse, error) { return nil, nil }, table.Unknown},
	}
	for _, others := range states {
		for _, odd := range states {
			for at := range 5 {
				for _, between := range []bool{false, true} {
					of := func(i int) state {
						if i == at {
							return odd
						}
						return others
					}
					f := &fake{write: func(rows [][]byte) (results []result, err error) {
						for i := range rows {
							results = append(results, failed("OTSConditionCheckFail"))
							if i >= 5 {
								results[i] = result{units: 2}
							}
						}
						if between {
							results[5], results[2] = results[2], results[5]
						}
						return results, nil
					}}
					f.get = func(r *tablestore.GetRowRequest) (*tablestore.GetRowResponse, error) {
						id := r.SingleRowQueryCriteria.PrimaryKey.PrimaryKeys[0].Value.(int64)
						return of(int(id)).get(id)
					}
					rows, repeated, outcomes := batch(t, 6, table.Put)
					for i := range repeated {
						repeated[i] = true
					}
					_, err := New(f, f, "t", table.Put, table.ExpectNotExist).Write(rows, repeated, outcomes)
					conformance.MustTrue(t, err == nil, "%v", err)
					for i, o := range outcomes {
						want := of(i).want
						if i == 2 && between || i == 5 && !between {
							want = table.Written
						}
						conformance.Equal(t, o.Fate, want, "%s among %s ones, in place %d: row %d has fate", odd.name, others.name, at, i)
					}
				}
			}
		}
	}
}
