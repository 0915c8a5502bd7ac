package reader

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"example.com/tsimport/reader/record"
)

var dialectFiles = flag.Int("dialect-files", 150, "random files of each kind whose dialect is found")

// written is a text in a random dialect, with the cells that were written: the oracle knows nothing of how it is read.
type written struct {
	says    string // the dialect
	cells   [][]string
	records []string // the text of each, its end included
}

func (w *written) text() string { return strings.Join(w.records, "") }

// writeRandom writes a random table in a random dialect. Writers put what needs it into quotes, or more.
func writeRandom(r *rand.Rand) *written {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	delimiter, quote, escape := pick(",", ";", "\t", "|", "\x01"), pick(`"`, `"`, "'", ""), pick("", "", `\`)
	end, policy := pick("\n", "\n", "\r\n"), pick("minimal", "all", "texts", "any")
	w := &written{says: fmt.Sprintf("delimiter %q quote %q escape %q, %s", delimiter, quote, escape, policy)}
	kinds := make([]string, 1+r.IntN(6))
	for i := range kinds {
		kinds[i] = pick("integer", "decimal", "comma", "word", "text", "date", "rare")
	}
	for n := range 2 + r.IntN(1+r.IntN(40)) {
		var cells []string
		line := ""
		for i, kind := range kinds {
			cell := randomCell(r, kind)
			if n == 0 {
				cell = fmt.Sprintf("%s_%d", pick("name", "id", "v", "a b", "größe"), i)
			}
			isText := kind == "word" || kind == "text" || kind == "rare" || n == 0
			needs := strings.Contains(cell, delimiter) || strings.ContainsAny(cell, "\r\n") || quote != "" && strings.Contains(cell, quote)
			if quote == "" && escape == "" || quote == "" && strings.ContainsAny(cell, "\r\n") { // nothing could write it
				cell = strings.NewReplacer(delimiter, " ", "\n", " ", "\r", " ").Replace(cell)
			}
			text := cell
			if escape != "" {
				text = strings.ReplaceAll(text, escape, escape+escape)
			}
			switch {
			case quote != "" && (needs || policy == "all" || policy == "texts" && isText || policy == "any" && r.IntN(2) == 0):
				text = quote + strings.ReplaceAll(text, quote, pickOf(escape, quote)+quote) + quote
			case escape != "":
				text = strings.ReplaceAll(text, delimiter, escape+delimiter)
			}
			if len(kinds) == 1 && text == "" {
				text, cell = "x", "x"
			}
			if i > 0 {
				line += delimiter
			}
			line, cells = line+text, append(cells, cell)
		}
		w.cells, w.records = append(w.cells, cells), append(w.records, line+end)
	}
	return w
}

func pickOf(first, otherwise string) string {
	if first != "" {
		return first
	}
	return otherwise
}

func randomCell(r *rand.Rand, kind string) string {
	words := []string{"it's", "o'clock", "'tis", "a, b", "x; y", `5" disk`, `say "hi"`, `C:\data`, "line\nend", "plain", "tab\there", "a|b", "", "'q'", `"q"`, "Köln", "don't; won't"}
	switch kind {
	case "integer":
		return fmt.Sprint(r.IntN(1000))
	case "decimal":
		return fmt.Sprintf("%d.%02d", r.IntN(1000), r.IntN(100))
	case "comma":
		return fmt.Sprintf("%d,%02d", r.IntN(1000), r.IntN(100))
	case "date":
		return fmt.Sprintf("2024-%02d-%02d", 1+r.IntN(12), 1+r.IntN(28))
	case "word":
		return []string{"red", "green", "blue", "x"}[r.IntN(4)]
	case "rare":
		if r.IntN(8) > 0 {
			return "usual"
		}
	}
	var text []string
	for range 1 + r.IntN(3) {
		text = append(text, words[r.IntN(len(words))])
	}
	return strings.Join(text, " ")
}

// spoil puts one fault into a record and returns which records have it.
func (w *written) spoil(r *rand.Rand) (from, to int) {
	from = r.IntN(len(w.records))
	if len(w.records) < 3 {
		from = 1 // a faulty header beside one record: nothing shows which of them is right
	}
	to = from + 1
	text := w.records[from]
	body := strings.TrimRight(text, "\r\n")
	at := r.IntN(len(body))
	if quotes := indexesOf(text, `"'`); len(quotes) > 0 && r.IntN(2) == 0 {
		at = quotes[r.IntN(len(quotes))] // where a fault does most
	}
	odd := string("\"',;|\\ x\n"[r.IntN(9)])
	switch r.IntN(8) {
	case 0:
		text = text[:at] + text[at+1:]
	case 1:
		text = text[:at] + odd + text[at:]
	case 2:
		text = text[:at+1] + odd + text[at+1:]
	case 3:
		text = text[:at] + odd + text[at+1:]
	case 4:
		text = text[:at+1] + " " + text[at+1:]
	case 5:
		text = body[:max(at, 1)] + text[len(body):] // cut short
	case 6:
		text = text[:at] + text[at:at+1] + text[at:]
	case 7:
		if from > 0 { // else the header names other columns, and nothing shows which
			text, to = body, min(to+1, len(w.records)) // the line end is missing
		}
	}
	w.records[from] = text
	return from, to
}

func indexesOf(text, chars string) (at []int) {
	for i := range len(text) {
		if strings.IndexByte(chars, text[i]) >= 0 {
			at = append(at, i)
		}
	}
	return at
}

// readFound reads a text with the dialect that is found for it. It returns the names and the rows as one list, and how many records are rejected.
func readFound(t *testing.T, text string) (rows [][]string, rejected int, found string, err error) {
	t.Helper()
	set := streamOf(t, []byte(text))
	s, err := Open(context.Background(), set, Options{Sniff: true})
	if err != nil {
		return nil, 0, "", err
	}
	defer s.Close()
	rows = append(rows, s.Columns)
	err = readEach(s, func(rec *record.Record) {
		if rec.Bad != nil || len(rec.Fields) != len(s.Columns) {
			rejected++
			return
		}
		var row []string
		for _, f := range rec.Fields {
			row = append(row, string(f.Bytes))
		}
		rows = append(rows, row)
	})
	if err == io.EOF {
		err = nil
	}
	return rows, rejected, s.Dialect.String(), err
}

// A file that is read without a reject has the cells that were written, but for those of the record with the fault.
func TestAFaultyRecordDoesNotTipTheDialect(t *testing.T) {
	r := rand.New(rand.NewPCG(20, 24))
	for _, faults := range []bool{false, true} {
		exact, refused, rejects := 0, 0, 0
		for range *dialectFiles {
			w := writeRandom(r)
			for len(w.cells) < 2 || strings.TrimSpace(w.text()) == "" {
				w = writeRandom(r)
			}
			from, to := 0, 0
			if faults {
				from, to = w.spoil(r)
			}
			rows, rejected, found, err := readFound(t, w.text())
			switch {
			case err != nil:
				refused++
			case rejected > 0:
				rejects++
				if !faults {
					t.Errorf("rejects of a valid file of %s read with %s:\n%s", w.says, found, w.text())
				}
			case sameButFor(rows, w.cells, from, to):
				exact++
			default:
				t.Errorf("%s, fault in record %d, read with %s without a reject:\n%s\nread %q", w.says, from, found, w.text(), rows)
			}
		}
		t.Logf("faults %v: %d exact, %d with rejects, %d refused, of %d", faults, exact, rejects, refused, *dialectFiles)
		if !faults && refused > *dialectFiles/3 {
			t.Errorf("%d of %d valid files were refused", refused, *dialectFiles)
		}
	}
}

// sameButFor compares the rows with what was written but for some records, of which others may have become.
func sameButFor(rows, cells [][]string, from, to int) bool {
	after := len(cells) - to
	return len(rows) >= from+after && (to > from || len(rows) == len(cells)) &&
		slices.EqualFunc(rows[:from], cells[:from], slices.Equal) &&
		slices.EqualFunc(rows[len(rows)-after:], cells[to:], slices.Equal)
}
