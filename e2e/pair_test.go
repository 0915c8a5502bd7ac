package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/objectstore/storetest"
	"example.com/tsimport/pipeline/checkpoint"
)

// pairOf are two services, the second of which is the profile b.
type pairOf struct {
	*place
	a, b *served
}

func newPairOf(t testing.TB) *pairOf {
	return pairUp(t, startServe(t, "--sync", "none", "--splits", "200ms:0ms:6"), startServe(t, "--sync", "none", "--splits", "150ms:0ms:6"))
}

func pairUp(t testing.TB, a, b *served) *pairOf {
	return &pairOf{newPlace(t, append(a.env(), "TABLESTORE_ENDPOINT_B="+b.URL, "TABLESTORE_ACCESS_KEY_ID_B="+b.AccessKeyID,
		"TABLESTORE_ACCESS_KEY_SECRET_B="+b.AccessKeySecret)...), a, b}
}

// swapped are the same services in the same folder, the first of which is the profile b.
func (p *pairOf) swapped() *pairOf {
	q := pairUp(p.t, p.b, p.a)
	q.dir, q.env = p.dir, append(p.env, q.env...)
	return q
}

// bucket makes a store of objects that the commands find.
func (p *place) bucket(t *testing.T, name string) *storetest.Server {
	around := &surroundings{T: t}
	objects := storetest.New(around, name)
	p.env = append(append(p.env, around.env...), "OSS_ENDPOINT="+objects.URL(), "OSS_REGION=cn-test")
	return objects
}

// inB is a table of the second service as an argument.
func (p *pairOf) inB(table string) string { return "ots://b@" + p.b.Instance + "/" + table }

// dump is all of a table: every row with every version, by its key.
func dump(t testing.TB, s *served, name string) map[string][]cell {
	t.Helper()
	rows := map[string][]cell{}
	for r := range rowsOf(t, s.client(), name) {
		rows[fmt.Sprint(keyValues(r.PrimaryKey))] = cellsOf(r.Columns)
	}
	return rows
}

// fill makes a table with rows of all kinds: of several versions, of any columns and types, and of none.
func (p *pairOf) fill(name string, from, to int) {
	p.t.Helper()
	tb := p.a.table(name)
	if from == 0 {
		meta := &tablestore.TableMeta{TableName: name}
		meta.AddPrimaryKeyColumn("pk1", tablestore.PrimaryKeyType_STRING)
		meta.AddPrimaryKeyColumn("pk2", tablestore.PrimaryKeyType_INTEGER)
		meta.AddDefinedColumn("n", tablestore.DefinedColumn_INTEGER)
		must(p.t, tb.create(meta, newOptions(-1, 4)))
	}
	now := time.Now().UnixMilli()
	var changes []tablestore.RowChange
	for i := from; i < to; i++ {
		var cells []cell
		if i%13 != 12 {
			cells = append(cells, c("text", strings.Repeat(fmt.Sprint("row ", i, " "), 1+i%30)), c("n", i), c("b", []byte{0, byte(i)}),
				c(fmt.Sprint("c", i%90), i%2 == 0), c("d", float64(i)/3))
			for back := range i % 5 {
				cells = append(cells, v("versions", int64(i*back), now-int64(1000*back)))
			}
		}
		changes = append(changes, tb.put(tb.key(fmt.Sprint("key ", i%997), i), cells...))
	}
	tb.load(p.t, changes...)
}

func (p *pairOf) same(from, to *served, source, target string) {
	p.t.Helper()
	if diff := differs(dump(p.t, from, source), dump(p.t, to, target)); diff != "" {
		p.t.Errorf("%s is not %s:\n%.2000s", target, source, diff)
	}
}

// indexed makes a table with two indexes and rows, of which some are in both, in one or in none.
func (p *pairOf) indexed(name string, rows int) {
	p.t.Helper()
	tb := p.a.table(name)
	meta := &tablestore.TableMeta{TableName: name}
	meta.AddPrimaryKeyColumn("pk1", tablestore.PrimaryKeyType_STRING)
	meta.AddPrimaryKeyColumn("pk2", tablestore.PrimaryKeyType_INTEGER)
	meta.AddDefinedColumn("city", tablestore.DefinedColumn_STRING)
	meta.AddDefinedColumn("n", tablestore.DefinedColumn_INTEGER)
	must(p.t, tb.create(meta, newOptions(-1, 1)))
	for _, i := range []*tablestore.IndexMeta{
		{IndexName: name + "_by_city", Primarykey: []string{"city", "pk2"}, DefinedColumns: []string{"n"}},
		{IndexName: name + "_by_n", Primarykey: []string{"n"}},
	} {
		i.IndexType = tablestore.IT_GLOBAL_INDEX
		_, err := tb.CreateIndex(&tablestore.CreateIndexRequest{MainTableName: name, IndexMeta: i, IncludeBaseData: true})
		must(p.t, err)
	}
	var changes []tablestore.RowChange
	for i := range rows {
		var cells []cell
		if i%3 > 0 {
			cells = append(cells, c("city", fmt.Sprint("city ", i%7)))
		}
		if i%4 > 0 {
			cells = append(cells, c("n", i%11))
		}
		changes = append(changes, tb.put(tb.key(fmt.Sprint("key ", i%97), i), append(cells, c("other", float64(i)))...))
	}
	tb.load(p.t, changes...)
}

// sameIndexes compares indexes, each a table of its own, of a table and its copy.
func (p *pairOf) sameIndexes(from, to *served, source, target string) {
	p.t.Helper()
	for _, name := range []string{"_by_city", "_by_n"} {
		was, is := dump(p.t, from, source+name), dump(p.t, to, target+name)
		if diff := differs(was, is); diff != "" || len(was) == 0 {
			p.t.Errorf("%s of %s: %d rows and %d: %.1000s", name, target, len(was), len(is), diff)
		}
	}
}

// troubled makes a service answer the share of requests of an operation with a fault.
func troubled(t testing.TB, s *served, seed uint64, rate float64, operation string, kinds ...string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"rate": rate, "seed": seed, "operations": []string{operation}, "kinds": kinds, "delay_ms": 20})
	must(t, err)
	req, err := http.NewRequest(http.MethodPost, s.URL+"/_engine/faults", bytes.NewReader(body))
	must(t, err)
	res, err := http.DefaultClient.Do(req)
	must(t, err)
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		t.Fatalf("faults: %s", res.Status)
	}
}

// copied is what the summary of a copy, or of another load, says.
type copied struct {
	State                                           string
	Read, Written, Rejected, Superseded, Unfinished int64
	Read_again, Expired_cells, Condition_failed     int64
}

// summary is the newest run's.
func (p *pairOf) summary() (r copied) {
	p.t.Helper()
	p.place.summary(&r)
	return r
}

// finalRows is how many rows the checkpoint of the newest run in a folder calls final, -1 without one.
func finalRows(dir string) int64 {
	runs, err := filepath.Glob(filepath.Join(dir, "tsimport-runs", "*"))
	if err != nil || len(runs) == 0 {
		return -1
	}
	s, err := checkpoint.Read(slices.Max(runs))
	if err != nil {
		return -1
	}
	return s.Counters["written"] + s.Counters["rejected"] + s.Counters["superseded"] + s.Counters["condition_failed"] + s.Counters["archived"]
}
