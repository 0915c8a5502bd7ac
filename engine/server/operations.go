package server

import (
	"context"
	"strings"

	"example.com/tsimport/engine/store"
	"example.com/tsimport/engine/wire"
)

// operation is one path of the protocol. decode judges a body; nothing is read or applied before run.
type operation struct {
	name   string
	decode func(s *Server, body []byte) (call, *wire.Error)
}

// call is a decoded request. It may hold views into the body.
type call interface {
	rows() int
	refuse(code func(row int) string) // before run: rows not to be applied
	visit(*visit)                     // names the rows or keys it touches, for the simulation
	settle(row int, err *wire.Error)  // before run: what the simulation refuses a row with
	run(context.Context) ([]byte, *wire.Error)
	release()
}

var operations = map[string]*operation{}

func init() {
	for _, op := range []*operation{
		{"CreateTable", tableOperation((*Server).createTable)},
		{"ListTable", tableOperation((*Server).listTable)},
		{"DescribeTable", tableOperation((*Server).describeTable)},
		{"UpdateTable", tableOperation((*Server).updateTable)},
		{"DeleteTable", tableOperation((*Server).deleteTable)},
		{"CreateIndex", tableOperation((*Server).createIndex)},
		{"DropIndex", tableOperation((*Server).dropIndex)},
		{"AddDefinedColumn", tableOperation(definedColumns(wire.DecodeAddDefined))},
		{"DeleteDefinedColumn", tableOperation(definedColumns(wire.DecodeDeleteDefined))},
		{"ComputeSplitPointsBySize", (*Server).splitPoints},
		{"ListSearchIndex", (*Server).listNothing},
		{"ListStream", (*Server).listNothing},
		{"ListTimeseriesTable", (*Server).listNothing},
		{"GetRow", (*Server).getRow},
		{"GetRange", (*Server).getRange},
		{"BatchGetRow", (*Server).batchGet},
		{"PutRow", writeOne(wire.PutRow)},
		{"UpdateRow", writeOne(wire.UpdateRow)},
		{"DeleteRow", writeOne(wire.DeleteRow)},
		{"BatchWriteRow", (*Server).batchWrite},
		{"BulkImport", (*Server).bulkImport},
		{"BulkExport", (*Server).bulkExport},
	} {
		operations[op.name] = op
	}
}

// unimplemented are the service's operations that the engine refuses by name; others do not exist.
var unimplemented = func() map[string]bool {
	m := map[string]bool{}
	for _, name := range []string{
		"StartLocalTransaction", "CommitTransaction", "AbortTransaction",
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
	} {
		m[name] = true
	}
	return m
}()

// instead says what to use in place of an operation that is refused; empty is nothing.
func instead(operation string) string {
	switch {
	case strings.HasSuffix(operation, "Transaction"):
		return " Write rows of one partition key all or none with BatchWriteRow and is_atomic."
	case strings.Contains(operation, "SearchIndex"), operation == "Search", operation == "ParallelScan", operation == "ComputeSplits", operation == "SQLQuery":
		return " Read with GetRange, or make a secondary index."
	case strings.Contains(operation, "Stream"), operation == "GetShardIterator", strings.HasPrefix(operation, "tunnel/"), strings.Contains(operation, "DeliveryTask"):
		return " Read the table with GetRange or BulkExport."
	case strings.Contains(operation, "Timeseries"):
		return " Keep the points as rows of a table, with the time in the last column of the key."
	case strings.Contains(operation, "GlobalTable"):
		return " Make a table with CreateTable."
	}
	return ""
}

// plain is a call without rows of its own.
type plain struct {
	n int
	f func(context.Context) ([]byte, *wire.Error)
}

func (p plain) rows() int                                     { return p.n }
func (p plain) refuse(func(int) string)                       {}
func (p plain) run(ctx context.Context) ([]byte, *wire.Error) { return p.f(ctx) }
func (p plain) visit(*visit)                                  {}
func (p plain) settle(int, *wire.Error)                       {}
func (p plain) release()                                      {}

// read is a plain call that reads rows.
type read struct {
	plain
	keys func(*visit)
	lost func(key int, err *wire.Error) // nil: the request fails as a whole
	err  *wire.Error
	page *store.Page // whose memory the answer is, until an answer has taken it; may be nil
}

func (r *read) release() { r.page.Release() }

func (r *read) visit(v *visit) { r.keys(v) }

func (r *read) settle(key int, err *wire.Error) {
	if r.lost == nil {
		r.err = err
		return
	}
	r.lost(key, err)
}

func (r *read) run(ctx context.Context) ([]byte, *wire.Error) {
	if r.err != nil {
		return nil, r.err
	}
	return r.plain.run(ctx)
}
