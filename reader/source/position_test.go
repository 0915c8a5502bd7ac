package source

import (
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
)

// TestLogPositionsAreOrdered compares all pairs in lists of positions, which are in ascending order.
func TestLogPositionsAreOrdered(t *testing.T) {
	begun := time.Unix(1e9, 0)
	for _, log := range [][]*Resume{
		{ResumeAt(begun), ResumeAt(begun.Add(time.Millisecond)), ResumeAt(begun.Add(time.Hour))},
		{{File: "binlog.9", Position: 5}, {File: "binlog.9", Position: 40}, {File: "binlog.10", Position: 4},
			{File: "binlog.11", Position: 4}},
		{{LSN: "0/9"}, {LSN: "0/FFFFFFFF"}, {LSN: "1/0"}, {LSN: "A/1"}, {LSN: "10/0"}},
	} {
		for i, a := range log {
			for j, b := range log {
				conformance.Equal(t, a.Before(b), i < j, "%v before %v", a, b)
			}
		}
	}
}
