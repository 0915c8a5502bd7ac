package plan

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/record"
)

func forecast(t *testing.T, r *Request) Forecast {
	t.Helper()
	return conformance.Try(makes(t, r, nil).Forecast(t.Context())).Must(t)
}

// wordy are records of different lengths without repeated text.
func wordy(rows int) string {
	random := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	b.WriteString("id,text\n")
	for i := range rows {
		fmt.Fprintf(&b, "%d,", i)
		for range random.IntN(20) {
			fmt.Fprintf(&b, "%x", random.Uint32())
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func packed(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	conformance.Must(t, conformance.ErrorOf(z.Write([]byte(text))))
	must(t, z.Close())
	return b.String()
}

func utf16Of(text string) string {
	var b bytes.Buffer
	for _, u := range append([]uint16{0xFEFF}, utf16.Encode([]rune(text))...) {
		b.Write([]byte{byte(u), byte(u >> 8)})
	}
	return b.String()
}

func TestRowCountsOfSmallFilesAreExact(t *testing.T) {
	text := wordy(500)
	for name, in := range map[string]string{"a.csv": text, "a.csv.gz": packed(t, text), "utf16.csv": utf16Of(text),
		"a.parquet": sortedParquet(t, 500), "a.jsonl": strings.Repeat(`{"id":"a"}`+"\n", 500),
		"no-end.csv": strings.TrimSuffix(text, "\n")} {
		f := forecast(t, ask(file(t, name, in)))
		conformance.True(t, f.Rows == 500 && f.Exact && f.Bytes == int64(len(in)) && f.Opened == 1, "%s: %+v", name, f)
	}
}

func TestRowCountsOfLargeFilesAreApproximate(t *testing.T) {
	const rows = 110_000 // 9 MB: more than what is sampled
	text := wordy(rows)
	for name, in := range map[string]string{"a.csv": text, "a.csv.gz": packed(t, text), "utf16.csv": utf16Of(text)} {
		f := forecast(t, ask(file(t, name, in)))
		conformance.True(t, !f.Exact && math.Abs(float64(f.Rows)/rows-1) <= 0.05, "%s: %+v", name, f)
	}
}

func TestTruncatedFileHasNoExactCount(t *testing.T) {
	whole := packed(t, wordy(2000))
	f := forecast(t, ask(file(t, "a.csv.gz", whole[:len(whole)*3/4])))
	conformance.True(t, !f.Exact, "%+v", f)
}

func TestALimitBoundsTheRows(t *testing.T) {
	r := ask(file(t, "a.csv", wordy(500)))
	r.Records = 20
	f := forecast(t, r)
	conformance.True(t, f.Rows == 20 && f.Exact, "%+v", f)
	r.Records = 1000
	f = forecast(t, r)
	conformance.True(t, f.Rows == 500 && f.Exact, "%+v", f)
}

func filesIn(t *testing.T, ending string, texts ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i, text := range texts {
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%04d.%s", i, ending)), []byte(text), 0o644))
	}
	return dir
}

func TestSampledFilesSpreadOverInputs(t *testing.T) {
	var texts []string
	for i := range 300 {
		texts = append(texts, "id,n\n"+strings.Repeat(fmt.Sprintf("k%03d,1\n", i), 10+i%3))
	}
	r := ask(filesIn(t, "csv", texts...))
	r.MostInputs = 7
	p := makes(t, r, nil)
	f := conformance.Try(p.Forecast(t.Context())).Must(t)
	conformance.True(t, f.Found == 300 && f.Chosen == 300 && f.Opened == 7 && len(f.Names) == shownNames && !f.Exact &&
		math.Abs(float64(f.Rows)/3300-1) <= 0.1, "%+v", f)
	conformance.True(t, len(p.Sources) == 7 && filepath.Base(p.Sources[0].Name) == "0000.csv" &&
		filepath.Base(p.Sources[6].Name) >= "0200.csv",
		"opened: %d, the last %s", len(p.Sources), p.Sources[len(p.Sources)-1].Name)
}

func TestParquetCountsAreExactForManyFiles(t *testing.T) {
	var texts []string
	want := int64(0)
	for i := range 30 {
		texts = append(texts, sortedParquet(t, 5+i))
		want += int64(5 + i)
	}
	r := ask(filesIn(t, "parquet", texts...))
	r.MostInputs = 4
	f := forecast(t, r)
	conformance.True(t, f.Rows == want && f.Exact && f.Opened == 30, "%+v, want %d rows", f, want)
	// A file that is not Parquet has the others' ratio of rows to bytes.
	r = ask(filesIn(t, "data", append(texts, "id,text\na,b\n")...))
	r.MostInputs = 4
	f = forecast(t, r)
	conformance.True(t, !f.Exact && f.Rows >= want, "%+v, want about %d rows", f, want)
	texts[17] = "PAR1 and then nothing"
	r = ask(filesIn(t, "parquet", texts...))
	r.MostInputs = 4
	conformance.Refused(t, conformance.ErrorOf(makes(t, r, nil).Forecast(t.Context())), "0017.parquet", "a damaged file")
}

func TestSampleSpreadsOverInputs(t *testing.T) {
	const rows = 100_000
	var b strings.Builder
	b.WriteString("id,n\n")
	for i := range rows {
		fmt.Fprintf(&b, "k%06d,%d\n", i, i)
	}
	p := makes(t, ask(file(t, "a.csv", b.String()), file(t, "b.csv", "id,n\nlast,1\n")), nil)
	parts, last, wholes := map[string]int{}, 0, 0
	err := p.Look(t.Context(), func(_ *Source, rec *record.Record, whole bool) bool {
		id := string(rec.Fields[0].Bytes)
		if id == "last" {
			last++
		} else if len(id) == len("k000000") {
			parts[id[:3]]++
		}
		if whole {
			wholes++
		}
		return true
	})
	conformance.True(t, err == nil && last == 1 && len(parts) == 10 && wholes == placeRecords+1,
		"%v: %d, %v, %d", err, last, parts, wholes)
}
