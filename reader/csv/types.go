package csv

import (
	"strings"

	"example.com/tsimport/reader/record"
)

// clickHouseFamilies are the families of the types of ClickHouse, without their parameters.
// https://clickhouse.com/docs/sql-reference/data-types
var clickHouseFamilies = func() map[string]bool {
	known := map[string]bool{}
	for name := range strings.FieldsSeq(`
		Int8 Int16 Int32 Int64 Int128 Int256 UInt8 UInt16 UInt32 UInt64 UInt128 UInt256 Float32 Float64 BFloat16
		Decimal Decimal32 Decimal64 Decimal128 Decimal256 Bool String FixedString UUID IPv4 IPv6
		Date Date32 DateTime DateTime32 DateTime64 Time Time64 Enum Enum8 Enum16 Array Tuple Map Nested Nullable LowCardinality
		AggregateFunction SimpleAggregateFunction Object JSON Variant Dynamic Nothing Point Ring LineString MultiLineString
		Polygon MultiPolygon QBit IntervalNanosecond IntervalMicrosecond IntervalMillisecond IntervalSecond IntervalMinute
		IntervalHour IntervalDay IntervalWeek IntervalMonth IntervalQuarter IntervalYear`) {
		known[name] = true
	}
	return known
}()

// NamesTypes reports whether every field of a record is the name of a ClickHouse type, as in the second line of
// TabSeparatedWithNamesAndTypes.
func NamesTypes(rec *record.Record) bool {
	if rec.Bad != nil {
		return false
	}
	for _, f := range rec.Fields {
		family, parameters, found := strings.Cut(string(f.Bytes), "(")
		if f.Kind != record.Text || !clickHouseFamilies[family] || found && !strings.HasSuffix(parameters, ")") {
			return false
		}
	}
	return true
}
