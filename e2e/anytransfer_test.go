//go:build e2e

package e2e

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

var (
	transferSeeds = flag.Int("transfer-seeds", 1, "how many tables TestAnyTableComesOutAsItIs draws")
	transferFirst = flag.Uint64("transfer-first", 1, "the seed of the first of them")
)

// anyTable is a table that was drawn: rows of any types, versions and timestamps under a key of one to four columns.
type anyTable struct {
	p        *pairOf
	rnd      *rand.Rand
	key      []tablestore.PrimaryKeyType
	versions int
	now      int64
}

var oddValues = []any{
	int64(0), int64(math.MinInt64), int64(math.MaxInt64), 0.0, math.Copysign(0, -1), math.MaxFloat64, math.SmallestNonzeroFloat64, 3.0, 1e21, true, false,
	"", "\x00\x1f\"\\\u2028\r\n\t", "\r\n", "7", "true", "null", "\U0010fffd𝄞é", "a,b", []byte{}, []byte{0, 255, '\n'}, []byte("text"),
}

var oddNames = []string{"a", "列, \"1\"", "with space", "C", "c", "V", "null", "é\u0301", "_x"}

func (a *anyTable) value() any {
	if a.rnd.IntN(3) == 0 {
		return fmt.Sprint("v", a.rnd.IntN(5))
	}
	return oddValues[a.rnd.IntN(len(oddValues))]
}

// pk is the i-th key: values that are close together, and those that sort oddly.
func (a *anyTable) pk(i int) (values []any) {
	for at, kind := range a.key {
		n := i
		if at < len(a.key)-1 {
			n = i % (3 + 4*at)
		}
		switch kind {
		case tablestore.PrimaryKeyType_INTEGER:
			values = append(values, int64(n)*(math.MaxInt64/4096)-int64(n%2)*math.MaxInt64/2)
		case tablestore.PrimaryKeyType_STRING:
			values = append(values, []string{"", "\r\n", "é", "\x00", "a,b", "\U0001d11e", "\""}[n%7]+strings.Repeat("x", n/7%5)+fmt.Sprint(n/35))
		default:
			values = append(values, append([]byte{byte(n), 0, 255, byte(n >> 8)}[:1+n%4:1+n%4], fmt.Sprint(n)...))
		}
	}
	return values
}

// cells are those of one row: of no column now and then, and of several versions.
func (a *anyTable) cells() (cells []cell) {
	if a.rnd.IntN(12) == 0 {
		return nil
	}
	for _, name := range oddNames {
		if a.rnd.IntN(3) > 0 {
			continue
		}
		at := a.now - a.rnd.Int64N(1000)
		for range 1 + a.rnd.IntN(a.versions) {
			cells = append(cells, v(name, a.value(), at))
			at -= 1 + a.rnd.Int64N(10)*a.rnd.Int64N(1_000_000_000)
		}
	}
	return cells
}

func (a *anyTable) make(s *served, name string, rows int) {
	meta := &tablestore.TableMeta{TableName: name}
	for i, kind := range a.key {
		meta.AddPrimaryKeyColumn(fmt.Sprint("pk", i+1), kind)
	}
	tb := s.table(name)
	options := newOptions(-1, a.versions)
	options.DeviationCellVersionInSec = 1_000_000_000
	must(a.p.t, tb.create(meta, options))
	var changes []tablestore.RowChange
	for i := range rows {
		changes = append(changes, tb.put(tb.key(a.pk(i)...), a.cells()...))
	}
	tb.load(a.p.t, changes...)
}

// disturb changes rows of a table: some are gone, others are new, others have other cells.
func (a *anyTable) disturb(s *served, name string, rows int) {
	tb := s.table(name)
	var changes []tablestore.RowChange
	for i := range rows + rows/5 {
		switch a.rnd.IntN(10) {
		case 0:
			changes = append(changes, tb.delete(tb.key(a.pk(i)...)))
		case 1, 2:
			changes = append(changes, tb.put(tb.key(a.pk(i)...), a.cells()...))
		}
	}
	tb.load(a.p.t, changes...)
}

// exact is a dump in which doubles are equal if all their bits are.
func exact(rows map[string][]cell) map[string][]cell {
	for _, cells := range rows {
		for i := range cells {
			if double, ok := cells[i].Value.(float64); ok {
				cells[i].Value = fmt.Sprintf("double %016x", math.Float64bits(double))
			}
		}
	}
	return rows
}

// TestAnyTableComesOutAsItIs draws tables, moves them in every way, changes what came out and syncs it: each time the service has the same cells,
// with types, versions and timestamps.
func TestAnyTableComesOutAsItIs(t *testing.T) {
	t.Parallel()
	for seed := *transferFirst; seed < *transferFirst+uint64(*transferSeeds); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			p := newPairOf(t)
			a := &anyTable{p: p, rnd: rand.New(rand.NewPCG(seed, 31)), now: time.Now().UnixMilli()}
			a.versions = 1 + a.rnd.IntN(5)
			var flags []string
			for i := range 1 + a.rnd.IntN(4) {
				kind := []tablestore.PrimaryKeyType{tablestore.PrimaryKeyType_INTEGER, tablestore.PrimaryKeyType_STRING, tablestore.PrimaryKeyType_BINARY}[a.rnd.IntN(3)]
				a.key = append(a.key, kind)
				flags = append(flags, "--pk", fmt.Sprintf("pk%d:%s", i+1, map[tablestore.PrimaryKeyType]string{tablestore.PrimaryKeyType_INTEGER: "integer", tablestore.PrimaryKeyType_STRING: "string", tablestore.PrimaryKeyType_BINARY: "binary"}[kind]))
			}
			rows := 1 + a.rnd.IntN(900)
			if *transferSeeds == 1 {
				rows = 250
			}
			a.make(p.a, "t", rows)
			want := exact(dump(t, p.a, "t"))
			if len(want) != rows {
				t.Fatalf("%d rows of %d", len(want), rows)
			}
			same := func(how string, s *served, name string) {
				t.Helper()
				if diff := differs(want, exact(dump(t, s, name))); diff != "" {
					t.Errorf("%s, key %v: %.2000s", how, a.key, diff)
				}
			}
			q := p.swapped()
			few := func() string { return fmt.Sprint(1 + a.rnd.IntN(9)) }
			p.run(0, "export", "--table", "t", "-o", "kept/", "--concurrency", few())
			q.run(0, "load", "kept", "--table", "archived", "--create", "--verify", "--batch-rows", few())
			same("archive", p.b, "archived")
			p.run(0, "export", "--table", "t", "-o", "t.jsonl", "--format", "jsonl", "--typed", "--concurrency", few())
			q.run(0, append([]string{"load", "t.jsonl", "--table", "typed", "--create", "--max-versions", fmt.Sprint(a.versions), "--max-deviation", "1000000000"}, flags...)...)
			same("typed", p.b, "typed")
			p.run(0, "copy", "t", p.inB("copied"), "--create", "--verify", "--concurrency", few())
			same("copy", p.b, "copied")
			hashed := []string{"--pk", "h:string=md5(pk1, 4)"}
			if len(a.key) == 4 {
				hashed = nil
			}
			for i := range a.key {
				hashed = append(hashed, "--pk", fmt.Sprint("pk", i+1))
			}
			p.run(0, append([]string{"copy", "t", p.inB("hashed"), "--create", "--verify"}, hashed...)...)
			back := []string{"copy", p.inB("hashed"), "back", "--create", "--verify"}
			if len(a.key) < 4 {
				back = append(back, "--exclude", "h")
				for i := range a.key {
					back = append(back, "--pk", fmt.Sprint("pk", i+1))
				}
			}
			p.run(0, back...)
			same("under another key and back", p.a, "back")
			for _, name := range []string{"archived", "copied", "typed"} {
				a.disturb(p.b, name, rows)
			}
			q.run(0, "sync", "kept", "--table", "archived", "--delete", "--max-delete", "100%")
			same("sync of an archive", p.b, "archived")
			q.run(0, "sync", "t.jsonl", "--table", "typed", "--delete", "--max-delete", "100%")
			same("sync of typed lines", p.b, "typed")
			q.env = append(q.env, "TABLESTORE_ENDPOINT_C="+p.a.URL, "TABLESTORE_ACCESS_KEY_ID_C="+p.a.AccessKeyID, "TABLESTORE_ACCESS_KEY_SECRET_C="+p.a.AccessKeySecret)
			q.run(0, "sync", "ots://c@"+p.a.Instance+"/t", "--table", "copied", "--delete", "--max-delete", "100%")
			same("sync of a table", p.b, "copied")
			q.run(0, "verify", "kept", "--table", "copied", "--extra", "fail")
		})
	}
}
