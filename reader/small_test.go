package reader

import (
	"runtime"
	"testing"

	"tsimport/reader/record"
)

// TestASmallFileTakesLittleMemory reads files as a load of thousands of them does: what each takes is what such a load takes.
func TestASmallFileTakesLittleMemory(t *testing.T) {
	text := []byte("id,name,price\n1,tea,2\n2,coffee,3\n")
	item := itemOf(t, "small.csv", text)
	const files = 50
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range files {
		s, err := Open(t.Context(), item, Options{})
		must(t, err)
		_, err = s.Identity()
		must(t, err)
		rows := 0
		if err := readEach(s, func(*record.Record) { rows++ }); err != nil || rows != 2 {
			t.Fatalf("%d rows, %v", rows, err)
		}
		must(t, s.Close())
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / files; each > 64<<10 {
		t.Errorf("a file of %d bytes takes %d bytes of memory", len(text), each)
	}
}
