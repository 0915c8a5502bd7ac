package wire

import (
	"bytes"
	"cmp"
	"math"
	"unicode/utf8"
)

// partitionRange is one range of CreateTable's partitions: two bounds of the first primary-key column, as variants.
type partitionRange struct{ begin, end []byte }

func (r *CreateTable) partition(b []byte) *Error {
	var p partitionRange
	err := message{{1, "partitions.begin", &p.begin}, {2, "partitions.end", &p.end}}.read(b)
	r.ranges = append(r.ranges, p)
	return err
}

// checkPartitions checks that initial partitions cover all keys in ascending order. Inner bounds become r.Bounds.
func (r *CreateTable) checkPartitions() *Error {
	r.Bounds = nil
	n := len(r.ranges)
	if n > MaxTablePartitions {
		return Invalid("The count of partitions cannot be greater than %d", MaxTablePartitions)
	}
	var last Cell // end of the previous range
	for i, p := range r.ranges {
		begin, err := r.bound(p.begin)
		if err != nil {
			return err
		}
		end, err := r.bound(p.end)
		if err != nil {
			return err
		}
		switch {
		case i == 0 && begin.Type != InfMin:
			return Invalid("The first partition must begin at %s.", InfMin)
		case i > 0 && (begin.Type != last.Type || !bytes.Equal(begin.Value, last.Value)):
			return Invalid("Partition %d must begin where partition %d ends.", i, i-1)
		case CompareBounds(&begin, &end) >= 0:
			return Invalid("The begin of partition %d must be less than its end.", i)
		case i == n-1 && end.Type != InfMax:
			return Invalid("The last partition must end at %s.", InfMax)
		}
		if i < n-1 {
			r.Bounds = append(r.Bounds, end)
		}
		last = end
	}
	return nil
}

// bound decodes a partition's bound: an infinity, or a partition-key value that is neither empty nor the least or
// greatest integer.
func (r *CreateTable) bound(b []byte) (Cell, *Error) {
	typ, value, rest, ok := ReadVariant(b)
	if !ok || len(rest) > 0 {
		return Cell{}, Invalid("Invalid partition range: the bound is not a value.")
	}
	c := Cell{Name: []byte(r.Key[0].Name), Type: typ, Value: value}
	if typ == InfMin || typ == InfMax {
		return c, nil
	}
	if want := r.Key[0].Type.ValueType(); typ != want {
		return c, Invalid("The value type of partition does not match with primary key.")
	}
	switch {
	case typ == String && len(value) == 0:
		return c, Invalid("The value of partition range can not be empty string.")
	case typ == Binary && len(value) == 0:
		return c, Invalid("The value of partition range can not be empty binary.")
	case typ == Integer && (c.Int() == math.MinInt64 || c.Int() == math.MaxInt64):
		return c, Invalid("The value of partition range can not be INT64_MIN or INT64_MAX.")
	case typ != Integer && len(value) > MaxPartitionBoundBytes:
		return c, Invalid("The value of partition range exceeds the MaxLength:%d with CurrentLength:%d.",
			MaxPartitionBoundBytes, len(value))
	case typ == String && !utf8.Valid(value):
		return c, Invalid("Value of column %s must be UTF8 encoding.", c.Name)
	}
	return c, nil
}

// CompareBounds compares two bounds of one partition key.
func CompareBounds(a, b *Cell) int {
	switch {
	case a.Type != b.Type && (a.Type == InfMin || b.Type == InfMax):
		return -1
	case a.Type != b.Type:
		return 1
	case a.Type == Integer:
		return cmp.Compare(a.Int(), b.Int())
	}
	return bytes.Compare(a.Value, b.Value) // empty for infinities
}
