package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// How loads that are crashed write.
const (
	modePut    = "put"
	modeUpdate = "update"
	modeDelete = "delete"
)

// crashRecord is a record of an input: pk1, pk2, a, b. An empty user or a is none.
type crashRecord struct {
	user string
	n    int64
	a    string
	b    int64
	text string // as it stands in a CSV or JSON-lines file, line end included
	bad  bool   // it can be no row
}

// crashKey is the key of a row.
type crashKey struct {
	user string
	n    int64
}

func (k crashKey) String() string { return fmt.Sprintf("%s/%d", k.user, k.n) }

// crashSource is an input file.
type crashSource struct {
	name    string
	records []crashRecord
}

// crashInput is what a load is given and what a sequential load makes of it.
type crashInput struct {
	mode, condition string
	deleteNull      bool
	order           string
	sources         []crashSource
	total           int

	before   map[crashKey]map[string]any // rows that are there before
	want     map[crashKey]map[string]any // and afterwards
	named    map[crashKey]bool           // keys of the records that are not rejected
	rejected map[string]string           // texts of rejects by "file record", empty of Parquet
}

// drawInput draws the way a load writes and what it is given.
func drawInput(t *testing.T, rnd *rand.Rand, dir string) *crashInput {
	in := &crashInput{mode: modePut, condition: "ignore", order: "last-wins"}
	ways := [][2]string{
		{modePut, "ignore"}, {modePut, "ignore"}, {modePut, "not-exist"}, {modePut, "exist"},
		{modeUpdate, "ignore"}, {modeUpdate, "not-exist"}, {modeUpdate, "exist"}, {modeDelete, "ignore"},
	}
	way := ways[rnd.IntN(len(ways))]
	in.mode, in.condition = way[0], way[1]
	in.deleteNull = in.mode == modeUpdate && rnd.IntN(2) == 0
	if rnd.IntN(3) == 0 {
		in.order = "none"
	}
	in.total = 2000 + rnd.IntN(6000)
	users, perUser := 40+rnd.IntN(800), 1+rnd.IntN(4)
	if in.mode != modePut || in.condition != "ignore" {
		users += 300 // rows of one key wait for each other, and for crashSettle whenever one is lost
	}
	wide := 1
	if rnd.IntN(3) == 0 { // more than fits in the least memory of a load
		wide = 9000
	}
	var all []crashRecord
	for i := range in.total {
		r := crashRecord{user: fmt.Sprintf("u%04d", rnd.IntN(users)), n: int64(rnd.IntN(perUser)), b: int64(i)}
		if in.order == "none" {
			r.n = int64(i)
		}
		if rnd.IntN(3) > 0 {
			r.a = fmt.Sprint("a", i, strings.Repeat(" filler", rnd.IntN(wide)/7))
		}
		switch rnd.IntN(300) {
		case 0:
			r.a = fmt.Sprintf("two\nlines, %d", i)
		case 1:
			r.user, r.bad = "", true
		case 2:
			r.text, r.bad = fmt.Sprintf("no record at all %d", i), true
		}
		all = append(all, r)
	}
	if rnd.IntN(3) == 0 { // in the order of the keys
		slices.SortStableFunc(all, func(a, b crashRecord) int { return strings.Compare(a.user, b.user) })
	}
	in.cut(t, rnd, dir, all)
	in.drawBefore(rnd, users, perUser)
	in.apply()
	return in
}

// cut makes files of the records.
func (in *crashInput) cut(t *testing.T, rnd *rand.Rand, dir string, all []crashRecord) {
	kinds := []string{".csv", ".csv.gz", ".jsonl", ".parquet"}
	rnd.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	kinds = kinds[:1+rnd.IntN(len(kinds))]
	for i, kind := range kinds {
		n := len(all)
		if i < len(kinds)-1 {
			n = rnd.IntN(n + 1)
		}
		s := crashSource{fmt.Sprintf("in%d%s", i, kind), all[:n]}
		all = all[n:]
		content := s.encode(t, kind)
		if err := os.WriteFile(filepath.Join(dir, s.name), content, 0o644); err != nil {
			t.Fatal(err)
		}
		in.sources = append(in.sources, s)
	}
}

// encode makes the file of a source, and enters the texts of the records.
func (s *crashSource) encode(t *testing.T, kind string) []byte {
	if kind == ".parquet" {
		return s.parquet(t)
	}
	var text bytes.Buffer
	if kind != ".jsonl" {
		text.WriteString("pk1,pk2,a,b\n")
	}
	for i := range s.records {
		r := &s.records[i]
		switch {
		case r.text != "":
			r.text += "\n"
		case kind == ".jsonl":
			r.text = r.json(t)
		default:
			r.text = r.csv()
		}
		text.WriteString(r.text)
	}
	if kind != ".csv.gz" {
		return text.Bytes()
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(text.Bytes()); err != nil {
		t.Fatal(err)
	}
	must(t, w.Close())
	return packed.Bytes()
}

func (r *crashRecord) csv() string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write([]string{r.user, strconv.FormatInt(r.n, 10), r.a, strconv.FormatInt(r.b, 10)}) // into memory
	w.Flush()
	return b.String()
}

func (r *crashRecord) json(t *testing.T) string {
	fields := map[string]any{"pk2": r.n, "b": r.b}
	if r.user != "" {
		fields["pk1"] = r.user
	}
	if r.a != "" {
		fields["a"] = r.a
	}
	text, err := json.Marshal(fields)
	must(t, err)
	return string(text) + "\n"
}

func (s *crashSource) parquet(t *testing.T) []byte {
	type row struct {
		User *string `parquet:"pk1,optional"`
		N    int64   `parquet:"pk2"`
		A    *string `parquet:"a,optional"`
		B    int64   `parquet:"b"`
	}
	var text bytes.Buffer
	w := parquet.NewGenericWriter[row](&text, parquet.MaxRowsPerRowGroup(700))
	for i := range s.records {
		r := &s.records[i]
		next := row{N: r.n, B: r.b}
		if r.text != "" { // there is no such thing in a Parquet file
			r.text, r.user = "", ""
		}
		if r.user != "" {
			next.User = &r.user
		}
		if r.a != "" {
			next.A = &r.a
		}
		if _, err := w.Write([]row{next}); err != nil {
			t.Fatal(err)
		}
	}
	must(t, w.Close())
	return text.Bytes()
}

// drawBefore draws rows that are there before the load: without any, conditions would be of no interest.
func (in *crashInput) drawBefore(rnd *rand.Rand, users, perUser int) {
	in.before = map[crashKey]map[string]any{}
	if in.condition == "ignore" && in.mode == modePut {
		return
	}
	for range 300 {
		k := crashKey{fmt.Sprintf("u%04d", rnd.IntN(users)), int64(rnd.IntN(perUser))}
		if s := in.sources[0].records; in.order == "none" && len(s) > 0 { // whose keys come once
			r := s[rnd.IntN(len(s))]
			k = crashKey{cmpOr(r.user, k.user), r.n}
		}
		in.before[k] = map[string]any{"a": "before", "b": int64(-1), "old": "kept"}
	}
}

func cmpOr(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

// apply works out what one record after the other leaves.
func (in *crashInput) apply() {
	in.want, in.named, in.rejected = map[crashKey]map[string]any{}, map[crashKey]bool{}, map[string]string{}
	for k, cells := range in.before {
		in.want[k] = cells
	}
	for _, s := range in.sources {
		for i := range s.records {
			r := &s.records[i]
			k := crashKey{r.user, r.n}
			old := in.want[k]
			if r.bad || in.condition == "exist" && old == nil || in.condition == "not-exist" && old != nil {
				in.rejected[fmt.Sprint(s.name, " ", i+1)] = r.text
				continue
			}
			in.named[k] = true
			in.want[k] = in.changed(old, r)
			if in.mode == modeDelete {
				delete(in.want, k)
			}
		}
	}
}

// changed returns the cells of a row that a record was written to.
func (in *crashInput) changed(old map[string]any, r *crashRecord) map[string]any {
	cells := map[string]any{"b": r.b}
	if in.mode == modeUpdate {
		for name, v := range old {
			if name != "b" && !(name == "a" && in.deleteNull) {
				cells[name] = v
			}
		}
	}
	if r.a != "" {
		cells["a"] = r.a
	}
	return cells
}

// flags are those of a load of the input.
func (in *crashInput) flags() []string {
	args := []string{
		"--table", crashTable, "--create", "--pk", "pk1:string", "--pk", "pk2:integer", "--type", "a=string", "--type", "b=integer",
		"--mode", in.mode, "--condition", in.condition, "--order", in.order,
	}
	if in.deleteNull {
		args = append(args, "--on-null", "delete")
	}
	for _, s := range in.sources {
		args = append(args, s.name)
	}
	return args
}
