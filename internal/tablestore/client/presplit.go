package client

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore/otsprotocol"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"example.com/tsimport/internal/table"
)

// MaxRanges is the largest number of partitions of a new table. A test of the Java SDK gets six, but not eleven.
const MaxRanges = 10

// Variant types of PlainBuffer, in which partition bounds are encoded.
const (
	variantInteger = 0
	variantString  = 3
	variantBinary  = 7
	variantInfMin  = 9
	variantInfMax  = 10
)

// CreateSplit creates a table like Create, with partitions between the bounds: fewer than MaxRanges ascending values of
// the first key column. If the service refuses them, refused says why, and the table has one partition. Success does
// not prove that the service used the bounds; Layout shows whether it did. Connection must be set.
func (a *Admin) CreateSplit(name string, key []table.KeyColumn, d table.Definition, defined map[string]table.Type,
	bounds []table.Value) (refused, err error) {
	err = a.createItself(name, key, d, defined, bounds)
	if err == nil || codeOf(err) == "OTSObjectAlreadyExist" || !isAnswer(err) {
		return nil, a.wrap("create", name, err)
	}
	return &Error{err}, a.CreateDefined(name, key, d, defined)
}

// createItself creates a table with a request that the SDK's client cannot make.
func (a *Admin) createItself(name string, key []table.KeyColumn, d table.Definition, defined map[string]table.Type,
	bounds []table.Value) error {
	if a.Connection == nil {
		return fmt.Errorf("names of more than %d bytes, and partitions, require a Connection", maxSDKName)
	}
	request := createRequest(name, key, d, defined, bounds)
	return a.create(name, key, d, func() error { return a.post("CreateTable", request) })
}

func (a *Admin) post(operation string, request protoadapt.MessageV1) error {
	body, err := proto.Marshal(protoadapt.MessageV2Of(request))
	if err != nil {
		return &notSent{err}
	}
	sender := a.Connection.Sender()
	defer sender.Close()
	_, err = sender.Post(operation, func(dst []byte) []byte { return append(dst, body...) })
	return err
}

func createRequest(name string, key []table.KeyColumn, d table.Definition, defined map[string]table.Type,
	bounds []table.Value) *otsprotocol.CreateTableRequest {
	meta := &otsprotocol.TableMeta{TableName: &name}
	for _, k := range key {
		column := &otsprotocol.PrimaryKeySchema{Name: &k.Name,
			Type: otsprotocol.PrimaryKeyType(sdkType(keyTypes, k.Type)).Enum()}
		if k.Auto {
			column.Option = otsprotocol.PrimaryKeyOption_AUTO_INCREMENT.Enum()
		}
		meta.PrimaryKey = append(meta.PrimaryKey, column)
	}
	for _, name := range slices.Sorted(maps.Keys(defined)) {
		t := sdkType(definedTypes, defined[name]).ConvertToPbDefinedColumnType()
		meta.DefinedColumn = append(meta.DefinedColumn, &otsprotocol.DefinedColumnSchema{Name: &name, Type: &t})
	}
	c := Change{ReservedRead: &d.ReservedRead, ReservedWrite: &d.ReservedWrite, TimeToLive: &d.TimeToLive,
		MaxVersions: &d.MaxVersions}
	if d.MaxDeviation > 0 {
		c.MaxDeviation = &d.MaxDeviation
	}
	if d.NoUpdates {
		c.AllowUpdate = new(false)
	}
	req := &otsprotocol.CreateTableRequest{TableMeta: meta, ReservedThroughput: c.throughput(), TableOptions: c.options()}
	if len(bounds) == 0 {
		return req
	}
	begin := []byte{variantInfMin}
	for _, b := range bounds {
		end := boundVariant(b)
		req.Partitions = append(req.Partitions, &otsprotocol.PartitionRange{Begin: begin, End: end})
		begin = end
	}
	req.Partitions = append(req.Partitions, &otsprotocol.PartitionRange{Begin: begin, End: []byte{variantInfMax}})
	return req
}

// boundVariant encodes a key column's value without a length before it.
func boundVariant(v table.Value) []byte {
	if v.Type == table.Integer {
		return binary.LittleEndian.AppendUint64([]byte{variantInteger}, uint64(v.Int))
	}
	variant := byte(variantString)
	if v.Type == table.Binary {
		variant = variantBinary
	}
	return append(binary.LittleEndian.AppendUint32([]byte{variant}, uint32(len(v.Bytes))), v.Bytes...)
}
