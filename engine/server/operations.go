package server

import (
	"context"
	"strings"

	"example.com/tsimport/engine/store"
	"example.com/tsimport/engine/wire"
)

// operation decodes the body of a request to one path of the protocol. Nothing is read or applied until the call runs.
type operation func(s *Server, body []byte) (call, *wire.Error)

// call is a decoded request. It may hold views into the body.
type call interface {
	rows() int
	refuse(code func(row int) string) // before run: names rows that must not be applied
	visit(*visit)                     // reports its rows or keys to the simulation
	settle(row int, err *wire.Error)  // before run: sets the simulation's refusal of a row
	run(context.Context) ([]byte, *wire.Error)
	release()
}

var operations = map[string]operation{
	"CreateTable":              tableOperation(simple(wire.DecodeCreateTable, (*Server).createTable)),
	"ListTable":                tableOperation(simple(nothing, (*Server).listTable)),
	"DescribeTable":            tableOperation(simple(wire.DecodeTableName, (*Server).describeTable)),
	"UpdateTable":              tableOperation(simple(wire.DecodeUpdateTable, (*Server).updateTable)),
	"DeleteTable":              tableOperation(simple(wire.DecodeTableName, (*Server).deleteTable)),
	"CreateIndex":              tableOperation(simple(wire.DecodeCreateIndex, (*Server).createIndex)),
	"DropIndex":                tableOperation(simple(wire.DecodeDropIndex, (*Server).dropIndex)),
	"AddDefinedColumn":         tableOperation(simple(wire.DecodeAddDefined, (*Server).updateDefined)),
	"DeleteDefinedColumn":      tableOperation(simple(wire.DecodeDeleteDefined, (*Server).updateDefined)),
	"ComputeSplitPointsBySize": simple(wire.DecodeSplitPoints, (*Server).splitPoints),
	"ListSearchIndex":          simple(wire.DecodeMaybeTableName, (*Server).listNothing),
	"ListStream":               simple(wire.DecodeMaybeTableName, (*Server).listNothing),
	"ListTimeseriesTable":      simple(wire.DecodeMaybeTableName, (*Server).listNothing),
	"GetRow":                   (*Server).getRow,
	"GetRange":                 rangeOf(wire.DecodeGetRange),
	"BatchGetRow":              (*Server).batchGet,
	"PutRow":                   writeOne(wire.PutRow),
	"UpdateRow":                writeOne(wire.UpdateRow),
	"DeleteRow":                writeOne(wire.DeleteRow),
	"BatchWriteRow":            writeOf(ofBatch, (*wire.WriteRequest).DecodeBatch),
	"StartLocalTransaction":    (*Server).startTransaction,
	"CommitTransaction":        endTransaction(true),
	"AbortTransaction":         endTransaction(false),
	"BulkImport":               writeOf(ofBulk, (*wire.WriteRequest).DecodeBulkImport),
	"BulkExport":               rangeOf(wire.DecodeBulkExport),
}

// unimplemented lists the service's operations that the engine refuses by name. Other operations do not exist.
var unimplemented = []string{
	"DescribeStream", "GetShardIterator", "GetStreamRecord",
	"CreateSearchIndex", "UpdateSearchIndex", "DeleteSearchIndex", "DescribeSearchIndex",
	"Search", "ParallelScan", "ComputeSplits", "SQLQuery",
	"CreateDeliveryTask", "DeleteDeliveryTask", "UpdateDeliveryTask", "DescribeDeliveryTask", "ListDeliveryTask",
	"CreateGlobalTable", "BindGlobalTable", "DescribeGlobalTable", "UnbindGlobalTable", "UpdateGlobalTable",
	"tunnel/create", "tunnel/delete", "tunnel/list", "tunnel/describe", "tunnel/connect", "tunnel/heartbeat",
	"tunnel/shutdown", "tunnel/getcheckpoint", "tunnel/readrecords", "tunnel/checkpoint",
	"PutTimeseriesData", "GetTimeseriesData", "QueryTimeseriesMeta", "CreateTimeseriesTable",
	"DeleteTimeseriesTable", "DescribeTimeseriesTable", "UpdateTimeseriesTable", "UpdateTimeseriesMeta",
	"DeleteTimeseriesMeta", "ScanTimeseriesData", "SplitTimeseriesScanTask",
	"CreateTimeseriesAnalyticalStore", "UpdateTimeseriesAnalyticalStore", "DescribeTimeseriesAnalyticalStore",
	"DeleteTimeseriesAnalyticalStore", "CreateTimeseriesLastpointIndex", "DeleteTimeseriesLastpointIndex",
}

// instead returns advice on what to use in place of a refused operation, or "".
func instead(operation string) string {
	switch {
	case strings.Contains(operation, "SearchIndex"), operation == "Search", operation == "ParallelScan",
		operation == "ComputeSplits", operation == "SQLQuery":
		return " Read with GetRange, or make a secondary index."
	case strings.Contains(operation, "Stream"), operation == "GetShardIterator", strings.HasPrefix(operation, "tunnel/"),
		strings.Contains(operation, "DeliveryTask"):
		return " Read the table with GetRange or BulkExport."
	case strings.Contains(operation, "Timeseries"):
		return " Keep the points as rows of a table, with the time in the last column of the key."
	case strings.Contains(operation, "GlobalTable"):
		return " Make a table with CreateTable."
	}
	return ""
}

// simple makes an operation without rows.
func simple[R any](
	decode func([]byte) (R, *wire.Error), run func(*Server, context.Context, R) ([]byte, *wire.Error),
) operation {
	return func(s *Server, body []byte) (call, *wire.Error) {
		r, err := decode(body)
		if judged, ok := any(r).(interface {
			Check(streams bool) *wire.Error
		}); ok && err == nil {
			err = judged.Check(s.o.IgnoreStreams)
		}
		return &plain{f: func(ctx context.Context) ([]byte, *wire.Error) { return run(s, ctx, r) }}, err
	}
}

func nothing([]byte) (struct{}, *wire.Error) { return struct{}{}, nil }

// plain is a call that writes no rows.
type plain struct {
	n    int // number of rows, if the request names each of them
	f    func(context.Context) ([]byte, *wire.Error)
	unit bool                           // the call costs a write capacity unit
	keys func(*visit)                   // reports the keys of rows read; may be nil
	lost func(key int, err *wire.Error) // sets the error of a key; if nil, the request fails as a whole
	err  *wire.Error
	page *store.Page // owner of the answer's memory until an answer takes it; may be nil
}

func (p *plain) rows() int               { return p.n }
func (p *plain) refuse(func(int) string) {}
func (p *plain) release()                { p.page.Release() }

func (p *plain) visit(v *visit) {
	if p.keys != nil {
		p.keys(v)
	}
}

func (p *plain) settle(key int, err *wire.Error) {
	if p.lost != nil {
		p.lost(key, err)
	} else {
		p.err = err
	}
}

func (p *plain) run(ctx context.Context) ([]byte, *wire.Error) {
	if p.err != nil {
		return nil, p.err
	}
	return p.f(ctx)
}

func (s *Server) startTransaction(body []byte) (call, *wire.Error) {
	r, err := wire.DecodeStartTransaction(body)
	if err != nil {
		return nil, err
	}
	return oneUnit(r.Name, r.Key, func(context.Context) ([]byte, *wire.Error) {
		t, err := s.table(r.Name)
		if err != nil {
			return nil, err
		}
		id, err := s.store.StartTransaction(t, r.Key[0])
		if err != nil {
			return nil, err
		}
		return wire.AppendStartTransaction(nil, id), nil
	}), nil
}

func endTransaction(commit bool) operation {
	return func(s *Server, body []byte) (call, *wire.Error) {
		id, err := wire.DecodeTransaction(body)
		if err != nil {
			return nil, err
		}
		table, key, _ := s.store.TransactionKey(id)
		return oneUnit([]byte(table), []wire.Cell{key}, func(ctx context.Context) ([]byte, *wire.Error) {
			return nil, s.store.EndTransaction(ctx, id, commit)
		}), nil
	}
}

// oneUnit makes a call that costs the key's partition a write capacity unit, which the answer does not report.
func oneUnit(table []byte, key []wire.Cell, f func(context.Context) ([]byte, *wire.Error)) *plain {
	p := &plain{n: 1, unit: true}
	outcome := make([]wire.Outcome, 1)
	p.keys = func(v *visit) {
		v.open(table)
		v.key(key)
		v.rows[0].Units, v.outcomes = 1, outcome
	}
	p.f = func(ctx context.Context) ([]byte, *wire.Error) {
		out, err := f(ctx)
		outcome[0].Err = err
		return out, err
	}
	return p
}
