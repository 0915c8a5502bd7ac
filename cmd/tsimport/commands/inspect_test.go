package commands

import (
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/pipeline/plan"
)

func TestFilesOfTheSameFormatAndColumnsAreInspectedInOneBlock(t *testing.T) {
	file := func(path, kind, why string) plan.Inspection {
		return plan.Inspection{Path: path, Format: "csv", Rows: 10, Exact: true, Error: why, Columns: []plan.InspectedColumn{{Name: "id", Type: kind}}}
	}
	found := []plan.Inspection{
		file("a.csv", "integer", ""), file("b.csv", "string", ""), file("c.csv", "integer", ""), file("d.csv", "integer", "cut off"),
		file("e.csv", "integer", "cut off"), file("f.csv", "integer", ""),
	}
	found[5].Together = []plan.Decision{{What: "column id", As: "integer in 5 files"}}
	for whole, blocks := range map[bool]int{false: 4, true: 6} {
		var out strings.Builder
		must(t, printInspections(&out, found, whole))
		text := out.String()
		conformance.Equal(t, strings.Count("\n"+text, "\nfile "), blocks, "whole %v: blocks:\n%s", whole, text)
		if strings.Contains(text, "2 files more") == whole || strings.Contains(text, "30\n") == whole {
			t.Errorf("whole %v:\n%s", whole, text)
		}
		if strings.Count(text, "cut off") != 2 || !strings.Contains(text, "the files together\ndiffer in") {
			t.Errorf("whole %v: an error or the difference is missing:\n%s", whole, text)
		}
	}
}
