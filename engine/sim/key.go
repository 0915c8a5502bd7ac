package sim

import (
	"encoding/binary"
	"slices"
)

// Key is a value of a partition key as bytes in the service's order: the content of a string or binary, or an integer
// encoded by AppendInteger. As a partition's start, the empty Key also means below all keys.
type Key string

// AppendInteger appends the Key of an integer: big-endian with the sign bit flipped, so that negative ones sort first.
func AppendInteger(dst []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(v)^1<<63)
}

// IntegerKey returns the Key of an integer.
func IntegerKey(v int64) Key { return Key(AppendInteger(nil, v)) }

func (k Key) Integer() (v int64, ok bool) {
	if len(k) != 8 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64([]byte(k)) ^ 1<<63), true
}

// Quantiles returns the distinct keys that cut sorted keys into n parts as evenly as possible.
func Quantiles(sorted []Key, n int) []Key {
	if len(sorted) == 0 {
		return nil
	}
	var points []Key
	for i := 1; i < n; i++ {
		points = append(points, sorted[i*len(sorted)/n])
	}
	points = slices.Compact(points)
	return slices.DeleteFunc(points, func(k Key) bool { return k == sorted[0] }) // no key would be below it
}

// halve returns the key that cuts sorted keys into two non-empty parts as evenly as possible. ok is false if all keys
// are equal, because one value cannot be split.
func halve(sorted []Key) (point Key, ok bool) {
	if len(sorted) < 2 || sorted[0] == sorted[len(sorted)-1] {
		return "", false
	}
	middle := len(sorted) / 2
	down, _ := slices.BinarySearch(sorted, sorted[middle]) // index of the first key equal to the middle one
	up := middle
	for up < len(sorted) && sorted[up] == sorted[middle] {
		up++
	}
	if down == 0 || up < len(sorted) && up-middle < middle-down {
		return sorted[up], true
	}
	return sorted[down], true
}
