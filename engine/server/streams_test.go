package server

import (
	"slices"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/engine/wire"
)

// Samples of SDKs make tables with a stream that they do not read.
func TestStreamsAreIgnoredWhereTheServerIsTold(t *testing.T) {
	dir := t.TempDir()
	spec := &tablestore.StreamSpecification{EnableStream: true, ExpirationTime: 168, OriginColumnsToGet: []string{"a", "b"}}
	request := func(name string) *tablestore.CreateTableRequest {
		meta := &tablestore.TableMeta{TableName: name}
		meta.AddPrimaryKeyColumn("k", tablestore.PrimaryKeyType_STRING)
		return &tablestore.CreateTableRequest{TableMeta: meta, TableOption: &tablestore.TableOption{TimeToAlive: -1, MaxVersion: 1},
			ReservedThroughput: &tablestore.ReservedThroughput{}, StreamSpec: spec}
	}
	for _, reopened := range []bool{false, true} {
		s := reopen(t, dir, Options{IgnoreStreams: true})
		c := inProcess(s)
		if !reopened {
			if _, err := c.CreateTable(request("t")); err != nil {
				t.Fatal(err)
			}
		}
		d, err := c.DescribeTable(&tablestore.DescribeTableRequest{TableName: "t"})
		must(t, err)
		if x := d.StreamDetails; !x.EnableStream || x.ExpirationTime != 168 || !slices.Equal(x.OriginColumnsToGet, spec.OriginColumnsToGet) {
			t.Errorf("described as %+v", x)
		}
		if _, err := c.DescribeStream(&tablestore.DescribeStreamRequest{StreamId: d.StreamDetails.StreamId}); code(err) != wire.CodeUnsupported {
			t.Errorf("a stream is read: %v", err)
		}
		if reopened {
			u, err := c.UpdateTable(&tablestore.UpdateTableRequest{TableName: "t", StreamSpec: &tablestore.StreamSpecification{EnableStream: false}})
			if err != nil || u.StreamDetails.EnableStream {
				t.Errorf("switched off: %v, %+v", err, u)
			}
		}
		must(t, s.Close())
	}
	s := open(t, Options{})
	if _, err := inProcess(s).CreateTable(request("u")); code(err) != wire.CodeUnsupported {
		t.Errorf("a stream that nobody ignores: %v", err)
	}
}
