//go:build e2e

package main

import (
	"flag"
	"fmt"
	"testing"

	"example.com/tsimport/internal/conformance"
)

var every = flag.Bool("every-memory-file", false, "measure what every command allocates")

// Allocations besides requests: one per row is too many. The difference of two sizes cancels what rows do not cost.
const (
	requestAllocs     = 105  // most of them headers of request and answer
	requestAllocBytes = 8000 // of a body, whose size depends on the rows, a part that does not
	mostAllocs        = 0.5  // a row; usually 0 to 0.2
	// a row of 12 columns; usually 900 to 1,000: what is read (150), its block (560), a part of that again for what grows
	mostAllocBytes = 1250
)

func TestLoadAllocatesAlmostNothingForARow(t *testing.T) {
	for _, flags := range [][]string{nil, {"--partitions", "8", "--tls"}} {
		if flags != nil && !*every { // make memory
			continue
		}
		load := func(rows int) (allocs, bytes float64) {
			args := append([]string{"client", "--json", "--rounds", "1", "--rows", fmt.Sprint(rows), "--only", "tsimport"},
				flags...)
			l := measured[costs](t, args...).Loads["tsimport"]
			return l.AllocsPerRow*float64(rows) - requestAllocs*float64(l.Requests),
				l.AllocBytesPerRow*float64(rows) - requestAllocBytes*float64(l.Requests)
		}
		const few, many = 20_000, 100_000
		var allocs, bytes float64
		for range 3 { // what else the process allocates now and then only adds to the figures
			allocs1, bytes1 := load(few)
			allocs2, bytes2 := load(many)
			allocs, bytes = (allocs2-allocs1)/(many-few), (bytes2-bytes1)/(many-few)
			t.Logf("%v: %.3f allocations and %.0f bytes a row", flags, allocs, bytes)
			if allocs <= mostAllocs && bytes <= mostAllocBytes {
				break
			}
		}
		conformance.True(t, allocs <= mostAllocs && bytes <= mostAllocBytes,
			"%v: %.3f allocations, %.0f bytes a row; want at most %v and %v", flags, allocs, bytes, mostAllocs, mostAllocBytes)
	}
}

// TestReadingAllocatesNothingForARow counts allocations per row; those of a page, a split or a request are shared.
func TestReadingAllocatesNothingForARow(t *testing.T) {
	for what, most := range map[string]float64{"export": 0.2, "verify": 0.3, "inspect": 0.1, "check": 0.1, "copy": 1.3} {
		if what != "verify" && what != "check" && what != "export" && !*every { // the others: make memory
			continue
		}
		allocations := func(rows int) float64 {
			l := measured[costs](t, "client", "--json", "--rounds", "1", "--what", what, "--rows",
				fmt.Sprint(rows)).Loads["tsimport"]
			conformance.True(t, l.CPUPerRow > 0 && l.AllocsPerRow > 0, "%s: %+v", what, l)
			return l.AllocsPerRow*float64(rows) - requestAllocs*float64(l.Requests)
		}
		few, many := 4_000, 20_000
		if what == "copy" { // whose buffers still grow
			few, many = 20_000, 100_000
		}
		allocs := (allocations(many) - allocations(few)) / float64(many-few)
		t.Logf("%s: %.3f allocations a row", what, allocs)
		conformance.True(t, allocs <= most, "%s: %.3f allocations a row, want at most %v", what, allocs, most)
	}
}
