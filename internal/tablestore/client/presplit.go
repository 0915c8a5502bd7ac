package client

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"example.com/tsimport/internal/table"
)

// MaxRanges is how many ranges a table can be created with. A test of the Java SDK creates six, and is refused eleven.
const MaxRanges = 10

// Fields of CreateTableRequest and of its parts, in which the SDK's client cannot ask for partitions.
const (
	createMeta       protowire.Number = 1
	createThroughput protowire.Number = 2
	createOptions    protowire.Number = 3
	createPartitions protowire.Number = 4

	metaName       protowire.Number = 1
	metaKey        protowire.Number = 2
	metaDefined    protowire.Number = 3
	keyName        protowire.Number = 1
	keyType        protowire.Number = 2
	keyOption      protowire.Number = 3
	optionLive     protowire.Number = 1
	optionVersions protowire.Number = 2
	optionMost     protowire.Number = 5
	optionUpdate   protowire.Number = 6
	throughputUnit protowire.Number = 1
	unitRead       protowire.Number = 1
	unitWrite      protowire.Number = 2
	rangeBegin     protowire.Number = 1
	rangeEnd       protowire.Number = 2
)

// definedNumbers are the protocol's for types of predefined columns.
var definedNumbers = map[table.Type]int64{table.Integer: 1, table.Double: 2, table.Boolean: 3, table.String: 4, table.Binary: 7}

// Variants of PlainBuffer, which bounds of partitions are written as.
const (
	variantInteger = 0
	variantString  = 3
	variantBinary  = 7
	variantInfMin  = 9
	variantInfMax  = 10
)

// CreateSplit makes a table as Create does, with the partitions between the bounds: values of the first key column that rise,
// fewer than MaxRanges. Refused is why the service refuses them; the table is then made with one partition. A table that was
// made does not say that the service has heard of the bounds: Layout does. Connection must be set.
func (a *Admin) CreateSplit(name string, key []table.KeyColumn, d table.Definition, defined map[string]table.Type, bounds []table.Value) (refused, err error) {
	err = a.createItself(name, key, d, defined, bounds)
	if err == nil || isCode(err, "OTSObjectAlreadyExist") || !isAnswer(err) {
		return nil, a.wrap("create", name, err)
	}
	return &Error{err}, a.CreateDefined(name, key, d, defined)
}

// createItself sends a request that the SDK's client cannot make.
func (a *Admin) createItself(name string, key []table.KeyColumn, d table.Definition, defined map[string]table.Type, bounds []table.Value) error {
	if a.Connection == nil {
		return fmt.Errorf("names of more than %d bytes, and partitions, need a connection", maxSDKName)
	}
	body := createRequest(name, key, d, defined, bounds)
	return a.create(name, key, d, func() error {
		sender := a.Connection.Sender()
		defer sender.Close()
		_, err := sender.Post("CreateTable", func(dst []byte) []byte { return append(dst, body...) })
		return err
	})
}

// createRequest is a CreateTableRequest with partitions, if there are bounds.
func createRequest(name string, key []table.KeyColumn, d table.Definition, defined map[string]table.Type, bounds []table.Value) []byte {
	meta := appendPart(nil, metaName, []byte(name))
	for _, k := range key {
		column := appendPart(nil, keyName, []byte(k.Name))
		for t, of := range keyTypes {
			if of == k.Type {
				column = appendNumber(column, keyType, int64(t))
			}
		}
		if k.Auto {
			column = appendNumber(column, keyOption, 1)
		}
		meta = appendPart(meta, metaKey, column)
	}
	for _, name := range slices.Sorted(maps.Keys(defined)) {
		column := appendPart(nil, keyName, []byte(name))
		meta = appendPart(meta, metaDefined, appendNumber(column, keyType, definedNumbers[defined[name]]))
	}
	unit := appendNumber(appendNumber(nil, unitRead, int64(d.ReservedRead)), unitWrite, int64(d.ReservedWrite))
	options := appendNumber(appendNumber(nil, optionLive, int64(d.TimeToLive)), optionVersions, int64(d.MaxVersions))
	if d.MaxDeviation > 0 {
		options = appendNumber(options, optionMost, d.MaxDeviation)
	}
	if d.NoUpdates {
		options = appendNumber(options, optionUpdate, 0)
	}
	req := appendPart(nil, createMeta, meta)
	req = appendPart(req, createThroughput, appendPart(nil, throughputUnit, unit))
	req = appendPart(req, createOptions, options)
	if len(bounds) == 0 {
		return req
	}
	begin := []byte{variantInfMin}
	for _, b := range bounds {
		end := boundVariant(b)
		req = appendPart(req, createPartitions, appendPart(appendPart(nil, rangeBegin, begin), rangeEnd, end))
		begin = end
	}
	return appendPart(req, createPartitions, appendPart(appendPart(nil, rangeBegin, begin), rangeEnd, []byte{variantInfMax}))
}

func appendPart(dst []byte, field protowire.Number, part []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, field, protowire.BytesType), part)
}

// appendNumber appends a number as int32 and int64 are: of a negative one, all 64 bits.
func appendNumber(dst []byte, field protowire.Number, n int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(dst, field, protowire.VarintType), uint64(n))
}

// boundVariant is a value of a key column without a length in front.
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
