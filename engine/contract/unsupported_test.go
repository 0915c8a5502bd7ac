package contract

import (
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// The engine refuses features that it lacks with these errors, so that no request is silently ignored.
var (
	unsupported = refusal{400, "OTSUnsupportedOperation", ""}
	noStreams   = refusal{400, "OTSUnsupportedOperation",
		"The engine does not support streams; read the table with GetRange or BulkExport."}
)

func skipReal(t *testing.T, s *service) {
	t.Helper()
	if s.real {
		t.Skip("the real service has these features")
	}
}

func TestUnsupportedFeaturesAreRefusedByName(t *testing.T) {
	s := proving(t, "1.2.4")
	skipReal(t, s)
	tb := s.newTable(t, tableOptions{})
	k := tb.key("a", 1)
	must(t, s.do(tb.put(k, c("c", 1))))
	_, err := s.SQLQuery(&tablestore.SQLQueryRequest{Query: "select 1"})
	check(t, err, unsupported)
	step := message{}.text(1, tb.name).bytes(2, message{}.text(1, "step").text(2, "pk2").int(4, 1).int(5, 0))
	s.ask(t, "CreateIndex", step).check(t, refusal{400, "OTSUnsupportedOperation",
		"The engine does not support global secondary indexes in the mode IUM_SYNC_INDEX; make them with IUM_ASYNC_INDEX."})
	_, err = s.UpdateTable(&tablestore.UpdateTableRequest{TableName: tb.name,
		StreamSpec: &tablestore.StreamSpecification{EnableStream: true, ExpirationTime: 24}})
	check(t, err, noStreams)
	diff(t, tb.all(t), []*row{{[]any{"a", int64(1)}, []cell{c("c", int64(1))}}})
}

func TestUnsupportedTablesAreRefusedByName(t *testing.T) {
	s := proving(t, "1.2.4")
	skipReal(t, s)
	for name, change := range map[string]func(*create){
		"a stream":   func(r *create) { r.more = message{}.bytes(5, message{}.int(1, 1).int(2, 24)) },
		"encryption": func(r *create) { r.more = message{}.bytes(6, message{}.int(1, 1).int(2, 1)) },
		"an index in step": func(r *create) {
			r.more = message{}.bytes(7, message{}.text(1, "i").text(2, "pk1").int(4, 1).int(5, 0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := unsupported
			if name == "a stream" {
				want = noStreams
			}
			s.checkCreate(t, change, want)
		})
	}
	t.Run("a feature switched off is accepted", func(t *testing.T) {
		s.checkCreate(t, func(r *create) {
			r.options = r.options.int(7, 0)
			r.more = message{}.bytes(5, message{}.int(1, 0)).bytes(6, message{}.int(1, 0)).int(8, 0)
		}, accepted)
	})
}

// Test suites list search indexes, streams and time-series tables to clean up, so the engine returns empty lists.
func TestListsOfMissingFeaturesAreEmpty(t *testing.T) {
	s := proving(t, "1.2.5")
	tb := s.newTable(t, tableOptions{})
	for table, want := range map[string]refusal{tb.name: accepted, newTableName(): noSuchTable, "": accepted} {
		request := &tablestore.ListStreamRequest{}
		if table != "" { // otherwise, the streams of all tables
			request.TableName = &table
			indexes, err := s.ListSearchIndex(&tablestore.ListSearchIndexRequest{TableName: table})
			check(t, err, want)
			diff(t, err != nil || len(indexes.IndexInfo) == 0, true)
		}
		streams, err := s.ListStream(request)
		check(t, err, want)
		diff(t, err != nil || len(streams.Streams) == 0, true)
	}
	s.ask(t, "ListTimeseriesTable", nil).check(t, accepted)
}

func TestUnsupportedOperationsAreRefusedByName(t *testing.T) {
	s := proving(t, "1.2.2")
	skipReal(t, s)
	for _, operation := range []string{
		"DescribeStream", "GetShardIterator", "GetStreamRecord", "CreateSearchIndex", "UpdateSearchIndex",
		"DeleteSearchIndex", "DescribeSearchIndex", "Search", "ParallelScan", "ComputeSplits", "SQLQuery",
		"CreateDeliveryTask", "DeleteDeliveryTask", "UpdateDeliveryTask", "DescribeDeliveryTask", "ListDeliveryTask",
		"CreateGlobalTable", "BindGlobalTable", "DescribeGlobalTable", "UnbindGlobalTable", "UpdateGlobalTable",
		"tunnel/create", "tunnel/delete", "tunnel/list", "tunnel/describe", "tunnel/connect", "tunnel/heartbeat",
		"tunnel/shutdown", "tunnel/getcheckpoint", "tunnel/readrecords", "tunnel/checkpoint", "PutTimeseriesData",
		"GetTimeseriesData", "QueryTimeseriesMeta", "ScanTimeseriesData", "SplitTimeseriesScanTask", "CreateTimeseriesTable",
		"DescribeTimeseriesTable", "UpdateTimeseriesTable", "DeleteTimeseriesTable", "UpdateTimeseriesMeta",
		"DeleteTimeseriesMeta", "CreateTimeseriesAnalyticalStore", "UpdateTimeseriesAnalyticalStore",
		"DescribeTimeseriesAnalyticalStore", "DeleteTimeseriesAnalyticalStore", "CreateTimeseriesLastpointIndex",
		"DeleteTimeseriesLastpointIndex",
	} {
		t.Run(operation, func(t *testing.T) {
			a := s.ask(t, operation, nil)
			a.check(t, refusal{400, "OTSUnsupportedOperation", "The engine does not support operation " + operation + ".…"})
			a.checkSigned(t, s, operation)
		})
	}
}
