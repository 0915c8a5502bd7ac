package reader

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"tsimport/reader/input"
	"tsimport/reader/jsonl"
	"tsimport/reader/record"
	"tsimport/reader/source/sourcetest"
)

// wideLines are the rows of a source, as rejects of them are kept.
func wideLines(t *testing.T, rows *sourcetest.Wide) []byte {
	t.Helper()
	var text []byte
	must(t, readSource(rows, func(rec *record.Record) { text = jsonl.AppendWide(text, rows.Columns, rec) }))
	return text
}

// readSource reads a source of pages to its end.
func readSource(s *sourcetest.Wide, each func(*record.Record)) error {
	p := s.NewParser([]int{0})
	for {
		piece, err := s.Next()
		if err != nil {
			return nil
		}
		splits, _ := s.Add(piece)
		for _, sp := range splits {
			if _, _, err := p.Parse(sp, each); err != nil {
				return err
			}
		}
	}
}

func TestFilesOfRowsThatDescribeThemselvesKeepTheContractOfSources(t *testing.T) {
	text := wideLines(t, sourcetest.NewWide("wide", 200, time.UnixMilli(1e12)))
	pretty := bytes.ReplaceAll(text, []byte(`},"Attr"`), []byte("},\n  \"Attr\""))
	for name, item := range map[string]func() input.Item{
		"lines":    fileOf(t, "in.ndjson", text),
		"objects":  fileOf(t, "in.json", pretty),
		"a stream": func() input.Item { return streamOf(t, text) },
		"in folder": func() input.Item {
			i := itemOf(t, "in.ndjson", text)
			i.Columns = []input.Column{{Name: "day", Value: "1"}}
			return i
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(context.Background(), item(), Options{})
			if err != nil || !s.About().Wide || !slices.Contains(s.Columns, "id") {
				t.Fatalf("%+v, %v", s, err)
			}
			s.Close()
			keepsTheContract(t, item, Options{SplitBytes: 2_500, ChainBytes: 1_500})
		})
	}
}
