package client

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore/otsprotocol"
	"google.golang.org/protobuf/encoding/protowire"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// Fields of DescribeTable that the SDK drops: partition bounds (PlainBuffer rows with one column) and creation time.
const (
	shardSplits  protowire.Number = 6
	creationTime protowire.Number = 9
)

// Layout holds the starts of a table's partitions, and identifies the table.
type Layout struct {
	// Bounds holds, in order, the first partition-key values of all partitions but the first, if the service reports them.
	Bounds  []table.Value
	Created int64 // see Table.Created
}

// Layout sends one DescribeTable, without retries because callers repeat it anyway. It may return ErrNoTable.
func (a *Admin) Layout(name string) (*Layout, error) {
	answer, err := a.rawDescription(name)
	if err != nil {
		return nil, a.wrap("describe", name, err)
	}
	return layoutOf(name, answer)
}

func layoutOf(name string, answer []byte) (l *Layout, err error) {
	l = new(Layout)
	if l.Bounds, err = decodeSplits(answer); err != nil {
		return nil, fmt.Errorf("describe table %s: read its partition bounds: %w", name, err)
	}
	if l.Created, err = decodeCreated(answer); err != nil {
		return nil, fmt.Errorf("describe table %s: read its creation time: %w", name, err)
	}
	return l, nil
}

// Splits returns Layout's bounds. Unlike Layout, it retries, because callers need the bounds only once.
func (a *Admin) Splits(name string) ([]table.Value, error) {
	answer, err := a.description(name)
	if err != nil {
		return nil, err
	}
	l, err := layoutOf(name, answer)
	if err != nil {
		return nil, err
	}
	return l.Bounds, nil
}

// rawDescription returns the service's raw response to one DescribeTable.
func (a *Admin) rawDescription(name string) ([]byte, error) {
	_, answer, err := a.describe(name)
	if err == nil && len(answer) == 0 {
		err = errors.New("its response was not recorded; create the client with New")
	}
	return answer, err
}

// description is like rawDescription, but retries.
func (a *Admin) description(name string) (answer []byte, err error) {
	err = a.try(func() (err error) {
		answer, err = a.rawDescription(name)
		return err
	})
	return answer, a.wrap("describe", name, err)
}

// describe sends one DescribeTable. raw is the service's raw response; it is empty if the client was not made by New.
func (a *Admin) describe(name string) (res *tablestore.DescribeTableResponse, raw []byte, err error) {
	answer := new(recording)
	req := &tablestore.DescribeTableRequest{TableName: name}
	id := trace("describe", answer)
	defer recordings.Delete(id)
	req.SetTraceID(id)
	err = answered(func() (err error) {
		res, err = a.Client.DescribeTable(req)
		return err
	})
	return res, answer.body.Bytes(), err
}

// decodeCreated returns a table's creation time, or 0 if the response has none.
func decodeCreated(answer []byte) (created int64, err error) {
	err = eachField(answer, func(number protowire.Number, kind protowire.Type, value []byte) error {
		if number != creationTime || kind != protowire.VarintType {
			return nil
		}
		v, n := protowire.ConsumeVarint(value)
		if n < 0 {
			return protowire.ParseError(n)
		}
		created = int64(v)
		return nil
	})
	return created, err
}

func decodeSplits(answer []byte) ([]table.Value, error) {
	d := new(otsprotocol.DescribeTableResponse)
	if err := unmarshal(answer, d); err != nil {
		return nil, err
	}
	var bounds []table.Value
	for _, row := range d.ShardSplits {
		decoded, err := plainbuffer.Decode(row)
		if err != nil {
			return nil, err
		}
		if len(decoded.Key) == 0 || !decoded.Key[0].Value.Type.KeyType() {
			return nil, errors.New("a partition bound has no value")
		}
		bounds = append(bounds, decoded.Key[0].Value)
	}
	return bounds, nil
}

// recording keeps the bytes of one response, because the SDK drops unknown fields. transport finds it by its trace ID.
type recording struct{ body bytes.Buffer }

// headerTraceID is the SDK's header for a trace ID, which the service logs.
const headerTraceID = "X-Ots-Sdk-Traceid"

var (
	recordings sync.Map // maps trace IDs to *recording or *page
	lastTrace  atomic.Int64
)

// trace makes the transport give the response to the request with the returned trace ID to a *recording or *page.
func trace(kind string, to any) (id string) {
	id = "tsimport-" + kind + "-" + strconv.FormatInt(lastTrace.Add(1), 10)
	recordings.Store(id, to)
	return id
}

// record makes reads of a response's body copy it to the recording of its request, if there is one.
func record(r *http.Request, res *http.Response) {
	id := r.Header.Get(headerTraceID)
	if id == "" {
		return
	}
	to, _ := recordings.Load(id)
	if to, wanted := to.(*recording); wanted {
		res.Body = &recordedBody{res.Body, to}
	}
}

type recordedBody struct {
	io.ReadCloser
	to *recording
}

func (b *recordedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.to.body.Write(p[:n])
	return n, err
}

// samplePatience limits the time for a sample of rows, which is never essential.
const samplePatience = 2 * time.Second

// CellTypes returns the types of values, by column, in a table's first and last n rows, and the number of rows read.
func (a *Admin) CellTypes(name string, key []table.KeyColumn, n int32) (types map[string]map[table.Type]bool, rows int,
	err error) {
	types = map[string]map[table.Type]bool{}
	for _, direction := range []tablestore.Direction{tablestore.FORWARD, tablestore.BACKWARD} {
		low, high := new(tablestore.PrimaryKey), new(tablestore.PrimaryKey)
		for _, k := range key {
			low.AddPrimaryKeyColumnWithMinValue(k.Name)
			high.AddPrimaryKeyColumnWithMaxValue(k.Name)
		}
		if direction == tablestore.BACKWARD {
			low, high = high, low
		}
		var res *tablestore.GetRangeResponse
		err := a.tryFor(samplePatience, func() (err error) {
			res, err = a.Client.GetRange(&tablestore.GetRangeRequest{RangeRowQueryCriteria: &tablestore.RangeRowQueryCriteria{
				TableName: name, StartPrimaryKey: low, EndPrimaryKey: high, Direction: direction, MaxVersion: 1, Limit: n,
			}})
			return err
		})
		if err != nil {
			return nil, 0, a.wrap("read", name, err)
		}
		for _, row := range res.Rows {
			rows++
			for _, c := range row.Columns {
				if types[c.ColumnName] == nil {
					types[c.ColumnName] = map[table.Type]bool{}
				}
				types[c.ColumnName][ValueOf(c.Value).Type] = true
			}
		}
		if res.NextStartPrimaryKey == nil { // the table has no more rows
			break
		}
	}
	return types, rows, nil
}
