package plan

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func byNumber[N cmp.Ordered](parse func(string) (N, error)) func(a, b string) int {
	return func(a, b string) int {
		x, _ := parse(a)
		y, _ := parse(b)
		return cmp.Compare(x, y)
	}
}

func TestTheLeastAndTheGreatestValueAreFoundByNumberOrByBytes(t *testing.T) {
	path, numbers := filepath.Join(t.TempDir(), "in.csv"), filepath.Join(t.TempDir(), "in.jsonl")
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.SampledFrom([]*rapid.Generator[string]{
			rapid.StringOfN(rapid.RuneFrom([]rune("ab\x01é")), 1, 12, -1),
			rapid.Map(rapid.Int64(), func(n int64) string { return strconv.FormatInt(n, 10) }),
			rapid.Map(rapid.IntRange(-999, 999), func(n int) string { return strconv.FormatFloat(float64(n)/8, 'f', -1, 64) }),
		}).Draw(t, "kind")
		values := rapid.SliceOfN(draw, 1, 40).Draw(t, "values")
		must(t, os.WriteFile(path, []byte("a,b\n"+strings.Join(values, ",\n")+",\n"), 0o644))
		found, err := Inspect(context.Background(), []string{path}, Read{}, true)
		must(t, err)
		order := strings.Compare
		switch found[0].Columns[0].Type {
		case "integer":
			order = byNumber(func(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) })
		case "double":
			order = byNumber(func(text string) (float64, error) { return strconv.ParseFloat(text, 64) })
		}
		got := found[0].Columns[0]
		if order(got.Min, slices.MinFunc(values, order)) != 0 || order(got.Max, slices.MaxFunc(values, order)) != 0 || found[0].Rows != int64(len(values)) || found[0].Columns[1].Nulls != found[0].Rows {
			t.Fatalf("%q: %+v", values, found)
		}
		if got.Type != "integer" {
			return
		}
		var lines strings.Builder
		for _, v := range values {
			lines.WriteString(`{"a":` + v + "}\n")
		}
		must(t, os.WriteFile(numbers, []byte(lines.String()), 0o644))
		found, err = Inspect(context.Background(), []string{numbers}, Read{}, true)
		must(t, err)
		if same := found[0].Columns[0]; same.Type != "integer" || same.Min != got.Min || same.Max != got.Max {
			t.Fatalf("%q in JSON: %+v", values, found)
		}
	})
}

func TestTheHeaderOfAJoinedFileSaysNothingAboutTypes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in.csv")
	must(t, os.WriteFile(path, []byte("id,v\n1,a\nid,v\n2,b\n"), 0o644))
	found, err := Inspect(context.Background(), []string{path}, Read{}, true)
	if err != nil || found[0].Columns[0].Type != "integer" || found[0].Rejected != 1 {
		t.Errorf("%v: %+v", err, found)
	}
}
