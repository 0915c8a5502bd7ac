package commands

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/tsimport/cmd/tsimport/advise"
	"example.com/tsimport/engine/enginetest"
	"example.com/tsimport/internal/conformance"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// rowsIn makes a table of rows with an integer and a string as the key, and ages from 0 to 9.
func rowsIn(t *testing.T, tsimport func(int, ...string) string) {
	t.Helper()
	text := "n,id,age\n"
	for i := range 300 {
		text += fmt.Sprintf("%d,k%03d,%d\n", i%3, i, i%10)
	}
	put(t, "p.csv", text)
	tsimport(0, "load", "p.csv", "-t", "p", "--create", "--pk", "n:integer", "--pk", "id", "-q")
}

func TestRowsOfATableAreCounted(t *testing.T) {
	tsimport := commandsIn(t)
	rowsIn(t, tsimport)
	for args, want := range map[string]string{"": "300", "--prefix 1": "100", "--from-key 1,k150": "150",
		"--to-key 1": "100", "--filter age<2": "60", "--where age<2": "60", "--prefix 2 --filter age==3": "10",
		"--filter nope==1": "0"} {
		got := tsimport(0, append([]string{"table", "count", "p", "-q"}, strings.Fields(args)...)...)
		conformance.Equal(t, strings.TrimSpace(got), want, "%s", args)
	}
	holds(t, tsimport(0, "table", "count", "p", "--json"), `"rows": 300`, `"read_units": `, "takes up to")
	holds(t, tsimport(2, "table", "count", "nope"), "no such table")
	holds(t, tsimport(2, "table", "count", "p", "--prefix", "1", "--from-key", "0"), "leave one of them out")
	holds(t, tsimport(2, "table", "count", "p", "--prefix", "x"), "the prefix x")
}

func TestRowsOfATableAreDeleted(t *testing.T) {
	tsimport := commandsIn(t)
	rowsIn(t, tsimport)
	count := func(want string) {
		t.Helper()
		conformance.Equal(t, strings.TrimSpace(tsimport(0, "table", "count", "p", "-q")), want, "rows")
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "tsimport table drop"}, {[]string{"--where", "age<2"}, "give --filter"},
		{[]string{"--keys", "p.csv", "--prefix", "1"}, "leave out --prefix, --from-key"},
		{[]string{"--filter", "age<2"}, "this would delete 60 rows of table p"},
		{[]string{"--filter", "age<2", "--yes", "--max-delete", "59"}, "--max-delete 59: 60 rows would be deleted"},
	} {
		holds(t, tsimport(2, append([]string{"table", "delete", "p"}, c.args...)...), c.want)
	}
	count("300")
	holds(t, tsimport(0, "table", "delete", "p", "--filter", "age<2", "--yes", "--max-delete", "60"), "60 deleted")
	count("240")
	holds(t, tsimport(0, "table", "delete", "p", "--filter", "age<2", "--yes"), "has no such rows")
	holds(t, tsimport(0, "table", "delete", "p", "--prefix", "1", "--yes"), "80 deleted")
	put(t, "k.csv", "n,id\n0,k003\n2,k299\n")
	holds(t, tsimport(0, "table", "delete", "p", "--keys", "k.csv"), "2 would be deleted")
	count("160")
	holds(t, tsimport(0, "table", "delete", "p", "--keys", "k.csv", "--yes"), "2 deleted")
	count("158")
	left := conformance.Try(filepath.Glob("tsimport-runs/delete-*")).Must(t)
	conformance.Equal(t, len(left), 0, "files of keys")
}

// killedDeletion simulates a deletion that was killed after it found its rows, and returns the file of their keys.
func killedDeletion(t *testing.T, tsimport func(int, ...string) string, which []string, rows ...string) (keys string) {
	t.Helper()
	tsimport(0, "export", "-t", "p", "-o", "archive/", "-q")
	var manifest struct {
		Created int64 `json:"creation_time"`
	}
	text := conformance.Try(os.ReadFile("archive/manifest.json")).Must(t)
	must(t, json.Unmarshal(text, &manifest))
	keys = deletedKeysFile("embedded store ./tsimport-store", "p", append([]string{fmt.Sprint(manifest.Created)},
		which...)...)
	tsimport(0, append([]string{"export", "-t", "p", "--typed", "--columns", "", "-o", keys, "-q"}, rows...)...)
	return keys
}

// TestRowsChangedByOthersAreNotDeleted changes rows between the search of a killed deletion and its resumption.
func TestRowsChangedByOthersAreNotDeleted(t *testing.T) {
	tsimport := commandsIn(t)
	rowsIn(t, tsimport)
	remove := []string{"table", "delete", "p", "--filter", "age < 2", "--yes"}
	keys := killedDeletion(t, tsimport, []string{"", "", "age < 2"}, "--filter", "age < 2")
	put(t, "c.csv", "n,id,age\n0,k000,5\n1,k001,\n0,k030,1\n")
	tsimport(0, "load", "c.csv", "-t", "p", "-q")
	put(t, "gone.csv", "n,id\n2,k011\n")
	tsimport(0, "load", "gone.csv", "-t", "p", "--mode", "delete", "-q")
	put(t, "new.csv", "n,id,age\n7,new,1\n")
	tsimport(0, "load", "new.csv", "-t", "p", "-q")
	said := tsimport(0, remove...)
	holds(t, said, "resuming the interrupted deletion of 60 rows", "57 deleted", "1 deleted")
	conformance.Equal(t, strings.TrimSpace(tsimport(0, "table", "count", "p", "-q")), "242", "rows")
	_, err := os.Stat(keys)
	conformance.True(t, os.IsNotExist(err), "the file of keys is left: %v", err)
}

// TestInterruptedDeletionOfAPrefixIsResumed checks that the rows are searched again with the same prefix.
func TestInterruptedDeletionOfAPrefixIsResumed(t *testing.T) {
	tsimport := commandsIn(t)
	rowsIn(t, tsimport)
	killedDeletion(t, tsimport, []string{"1", "2", ""}, "--prefix", "1")
	put(t, "new.csv", "n,id,age\n1,new,1\n")
	tsimport(0, "load", "new.csv", "-t", "p", "-q")
	ends(t, 0, "table delete p --prefix 1 --yes", "resuming the interrupted deletion of 100 rows",
		"100 deleted", "1 deleted")
	conformance.Equal(t, strings.TrimSpace(tsimport(0, "table", "count", "p", "-q")), "200", "rows")
}

// TestRowsOfKeysAreExportedAndCounted gives unsorted, repeated and missing keys, which take several requests.
func TestRowsOfKeysAreExportedAndCounted(t *testing.T) {
	tsimport := commandsIn(t)
	var rows, keys, want strings.Builder
	rows.WriteString("dev,n,v\n")
	keys.WriteString("n,dev\n")
	for i := range 3000 {
		fmt.Fprintf(&rows, "d%02d,%d,v%d\n", i%10, i, i)
	}
	for i := 2999; i >= 0; i -= 3 {
		fmt.Fprintf(&keys, "%d,d%02d\n%d,d%02d\n", i, i%10, i+100000, i%10)
	}
	for d := range 10 {
		for i := range 3000 {
			if i%10 == d && i%3 == 2 {
				fmt.Fprintf(&want, "d%02d,%d,v%d\n", d, i, i)
			}
		}
	}
	keys.WriteString("2999,d09\n")
	put(t, "rows.csv", rows.String())
	put(t, "keys.csv", keys.String())
	tsimport(0, "load", "rows.csv", "-t", "t", "--create", "--pk", "dev:string", "--pk", "n:integer", "-q")

	ends(t, 0, "export -t t --keys keys.csv -o out.csv --max-rcu 100000", "exported 1,000 rows", "no rows for 1,000 keys")
	got := conformance.Try(os.ReadFile("out.csv")).Must(t)
	conformance.Equal(t, string(got), "dev,n,v\n"+want.String(), "rows of the keys")
	holds(t, tsimport(0, "export", "-t", "t", "--keys", "keys.csv", "--where", "n < 10", "--format", "jsonl", "-o",
		"few.jsonl"), "exported 3 rows")
	holds(t, tsimport(0, "export", "-t", "t", "--keys", "keys.csv", "--limit", "7", "-o", "seven.csv"), "exported 7 rows")
	conformance.Equal(t, tsimport(0, "table", "count", "t", "--keys", "keys.csv", "-q"), "1000\n", "rows counted")
	conformance.Equal(t, tsimport(0, "table", "count", "t", "--prefix", "d07", "-q"), "300\n", "rows counted")
	tsimport(0, "export", "-t", "t", "--prefix", "d07,7", "-o", "one.csv")
	one := conformance.Try(os.ReadFile("one.csv")).Must(t)
	conformance.Equal(t, string(one), "dev,n,v\nd07,7,v7\n", "the row of a whole key")

	put(t, "bad.csv", "dev,n\nd01,x\n")
	holds(t, tsimport(2, "export", "-t", "t", "--keys", "bad.csv"), "bad.csv, record 1, column n")
	put(t, "short.csv", "dev\nd01\n")
	holds(t, tsimport(2, "export", "-t", "t", "--keys", "short.csv"), "no column \"n\"")
	holds(t, tsimport(2, "export", "-t", "t", "--keys", "keys.csv", "--prefix", "d01"), "leave out --prefix, --from-key")
	holds(t, tsimport(2, "export", "-t", "t", "--keys", "keys.csv", "--filter", "n > 1"), "give --where")
	holds(t, tsimport(2, "export", "-t", "t", "--keys", "keys.csv", "-o", "folder/"), "--keys")
	holds(t, tsimport(2, "export", "-t", "t", "--prefix", "d01", "--to-key", "d02"), "leave one of them out")
}

// TestCommandsInspectAnExistingTable inspects a table in which some rows lack columns. It runs the suggested commands.
func TestCommandsInspectAnExistingTable(t *testing.T) {
	tsimport := commandsIn(t)
	var rows strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&rows, `{"n":%d,"city":"c%d","age":%d,"made_at":"2026-01-%02dT%02d:%02d:00Z"}`+"\n", 1000+i, i%7, i%50,
			1+i/120, i/5%24, i%5)
	}
	rows.WriteString(`{"n":9999,"late":"x"}` + "\n")
	put(t, "p.jsonl", rows.String())
	tsimport(0, "load", "p.jsonl", "-t", "p", "--create", "--pk", "n:integer", "-q")

	said := tsimport(0, "inspect", "ots://tsimport/p", "--count")
	for _, want := range []string{`rows +3,001`, `n +integer +0 +1000 +9999`, `age +integer +1 +0 +49`,
		`city +string +1 +c0 +c6`, `late +string +3,?000`} {
		conformance.Equal(t, regexp.MustCompile(want).MatchString(said), true, "%s is not in %s", want, said)
	}
	holds(t, tsimport(0, "inspect", "ots://tsimport/p", "--json"), `"format":"table"`)
	holds(t, tsimport(0, "check", "ots://tsimport/p", "--pk", "n", "--unique"), "3,001 keys, 0 records with an")
	holds(t, tsimport(3, "check", "ots://tsimport/p", "--pk", "city", "--unique"), "7 keys", "1 would be rejected")
	advice := tsimport(0, "advise", "ots://tsimport/p", "--partitions", "8", "--rate", "8000")
	holds(t, advice, "n: not recommended: n is increasing", "it has all columns of the source's own key")
	command := regexp.MustCompile(`(?m)copy p (\S+) --pk '(.+)'$`).FindStringSubmatch(advice)
	conformance.MustTrue(t, command != nil, "no command to copy the table: %s", advice)
	tsimport(0, "copy", "p", command[1], "--pk", command[2], "-q")
	conformance.Equal(t, strings.TrimSpace(tsimport(0, "table", "count", command[1], "-q")), "3001", "rows of the copy")

	holds(t, tsimport(2, "inspect", "ots://tsimport/nope"), "does not exist")
	holds(t, tsimport(2, "inspect", "ots://tsimport/p", "p.jsonl"), "the only source")
	holds(t, tsimport(2, "check", "ots://elsewhere/p", "--pk", "n"), "no endpoint")
	holds(t, tsimport(2, "advise", "ots://tsimport/nope"), "does not exist")
}

var plantedTables = flag.Int("planted-tables", 5, "tables whose faults TestTableProblemsAreFound plants")

// TestTableProblemsAreFound creates tables without time columns: only the cells have timestamps.
func TestTableProblemsAreFound(t *testing.T) {
	conformance.NotForRaces(t)
	tsimport := commandsIn(t)
	began := time.Now().Add(-23 * time.Hour) // the service accepts timestamps up to a day old
	kinds := []string{"", advise.HotValue, advise.HotRange, advise.Growing, advise.Cold}
	for i := range *plantedTables {
		kind, random := kinds[i%len(kinds)], rand.New(rand.NewPCG(uint64(i), 1))
		rows, keys := 2000+random.IntN(6000), 200+random.IntN(2000)
		moved := random.IntN(keys)
		var typed strings.Builder
		for r := range rows {
			recent, n := r > rows*2/3, random.IntN(keys)
			switch {
			case kind == advise.HotValue && random.IntN(3) == 0:
				n = moved
			case kind == advise.HotRange && recent && random.IntN(4) > 0:
				n = (moved + random.IntN(keys/20)) % keys
			case kind == advise.Growing:
				n = r * keys / rows
			case kind == advise.Cold && recent:
				n = keys/2 + random.IntN(keys/2)
			}
			key := fmt.Sprintf(`{"C":"card","V":%d,"IsInt":true}`, n)
			if i%2 == 1 {
				key = fmt.Sprintf(`{"C":"card","V":"%06d"}`, n)
			}
			fmt.Fprintf(&typed,
				`{"Wide":true,"PK":{"Values":[%s,{"C":"n","V":%d,"IsInt":true}]},"Attr":{"Values":[{"C":"v","V":1,"IsInt":true,"TS":%d}]}}`+"\n",
				key, r, began.Add(time.Duration(r)*10*time.Second).UnixMilli())
		}
		name := fmt.Sprintf("t%d", i)
		put(t, name+".jsonl", typed.String())
		card := []string{"card:integer", "card:string"}[i%2]
		tsimport(0, "load", name+".jsonl", "-t", name, "--create", "--pk", card, "--pk", "n:integer", "-q")
		var report advise.Report
		_, text, _ := strings.Cut(tsimport(0, "advise", "ots://tsimport/"+name, "--json"), "{")
		must(t, json.NewDecoder(strings.NewReader("{"+text)).Decode(&report))
		p, counted, found := report.Present, int64(0), ""
		for _, r := range p.Ranges {
			counted += r.Rows
		}
		for _, u := range p.Uneven {
			found += u.Kind
		}
		conformance.True(t, counted == int64(rows) && len(p.Ranges) >= 20 && found == kind,
			"%d: %d rows, %d keys: found %q, want %q: %d rows in %d ranges, %+v", i, rows, keys, found, kind, counted,
			len(p.Ranges), p.Uneven)
	}
}

func TestExplainAcceptsAValueRange(t *testing.T) {
	tsimport := commandsIn(t)
	key := []string{"explain", "--type", "n=integer", "--type", "s=string", "--pk", "k=pad(n,4)+s", "--value"}
	holds(t, tsimport(0, append(key, "n=15..100")...), "n=15..100 are in one range", `"k", "0015"`, `"k", "0100"`)
	holds(t, tsimport(0, append(key, "n=15", "--value", `s="a..b"`)...), `"k", "0015a..b"`)
	holds(t, tsimport(2, append(key, "n=15..2")...), "the range is empty")
	holds(t, tsimport(2, append(key, "n=15..")...), "want an integer")
}

func TestNewTableHasItsDefinedIndexes(t *testing.T) {
	tsimport := commandsIn(t)
	put(t, "p.csv", "id,city,age,price,note\n1,HZ,30,1.5,x\n2,SH,20,2.5,\n3,HZ,20,,y\n")
	load := []string{"load", "p.csv", "--create", "--pk", "id:integer", "-t"}
	with := func(table string, define ...string) (args []string) {
		args = append(append(args, load...), table)
		for _, d := range define {
			args = append(args, "--define", d)
		}
		return args
	}
	said := tsimport(0, with("p", "index by_city(city, age) price", "local index own(id, city) note:string",
		"column price:double")...)
	holds(t, said, "gets the global index by_city with the key city, age and the columns price when all rows are written",
		"local index own")
	conformance.Equal(t, tsimport(0, "export", "-t", "by_city", "-q"),
		"city,age,id,price\nHZ,20,3,\nHZ,30,1,1.5\nSH,20,2,2.5\n", "index")
	conformance.Equal(t, tsimport(0, "export", "-t", "own", "-q"), "id,city,note\n1,HZ,x\n2,SH,\n3,HZ,y\n", "index")
	put(t, "b.csv", "id,city\n1,HZ\n2,SH,x\n")
	again := []string{"load", "b.csv", "--create", "--pk", "id:integer", "-t", "b", "--define", "index e(city)"}
	tsimport(4, append(again, "--max-errors", "0")...) // it has made the table, but not the index
	tsimport(3, append(again, "--fresh")...)
	conformance.Equal(t, tsimport(0, "export", "-t", "e", "-q"), "city,id\nHZ,1\n", "index")
	said = tsimport(0, "load", "p.csv", "-t", "p", "--define", "column x:string")
	holds(t, said, " exists, so the options for a new table")
	for _, c := range []struct{ define, want string }{
		{"index i", "want 'column NAME"}, {"index i()", "want 'column NAME"}, {"column a=b", "is not the name of a column"},
		{"column a,", "column"}, {"index i(city,city)", "is named twice"},
		{"index i(city:thing)", "thing"}, {"column nope", "the type of column nope is unknown"},
		{"column city:integer", "but loaded as string"}, {"index i(price)", "column price of its key is double"},
		{"local index i(city)", "not the partition key, id"}, {"index i(city) city", "leave it out there"},
		{"index p(city)", "has a table or an index with that name"},
		{"index q(city)", "has a table or an index with that name"},
		{"index i(city,age,price,note,id)", "at most 4 key and 32 other columns"},
	} {
		holds(t, tsimport(2, with("q", c.define)...), c.want)
	}
	holds(t, tsimport(2, with("q", "index i(city)", "index i(age)")...), "index i is already defined")
	holds(t, tsimport(2, with("q", "column city:string", "index i(city:binary)")...), "has the type string elsewhere")
	holds(t, tsimport(2, append(with("q", "index i(city)"), "--max-versions", "2")...), "keeps one version")
	holds(t, tsimport(2, append(with("q", "index i(city)"), "--ttl", "86400")...), "expire only if it refuses updates")
	holds(t, tsimport(2, with("q", "index a(city)", "index b(city)", "index c(city)", "index d(city)", "index e(city)",
		"index f(city)")...), "at most 5")
	holds(t, tsimport(2, with("q_{city}", "index i(city)")...), "tsimport table create --define")
	tsimport(2, "table", "describe", "q")

	tsimport(0, "table", "create", "z", "--pk", "a:string", "--pk", "b:integer", "--define",
		"local index lz(a, c:string) d:double", "--define", "column e:binary", "-q")
	holds(t, tsimport(0, "table", "describe", "z"), "local index lz with the key a, c and the columns d")
	holds(t, tsimport(2, "table", "create", "y", "--pk", "a:string", "--define", "column c"), "give the type of column c")
	said = tsimport(2, "table", "create", "y", "--pk", "a:string", "--define", "index z(a)")
	holds(t, said, "has a table or an index with that name")
	tsimport(2, "table", "describe", "y")
}

func TestLoadWarnsThatGeneratedKeysAreNotSaved(t *testing.T) {
	tsimport := commandsIn(t)
	put(t, "m.csv", "g,x\na,1\n")
	const note = "the values that the service assigns to seq are lost"
	load := []string{"load", "m.csv", "-t", "m", "--create", "--pk", "g", "--pk", "seq:auto", "--fresh"}
	holds(t, tsimport(0, load...), note)
	said := tsimport(0, append(load, "--returned-keys", "k.csv")...)
	conformance.True(t, !strings.Contains(said, note), "of a load that keeps them: %s", said)
}

// expiring is an engine whose clock advances when a load's first rows arrive, so that cells expire after being read.
type expiring struct {
	*enginetest.Engine
	mu   sync.Mutex
	next time.Duration
}

func newExpiring(t *testing.T) *expiring {
	e := &expiring{Engine: enginetest.Start(t)}
	to := conformance.Try(url.Parse(e.URL)).Must(t)
	proxy := httputil.NewSingleHostReverseProxy(to)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/BatchWriteRow" {
			e.mu.Lock()
			e.Advance(t, e.next)
			e.next = 0
			e.mu.Unlock()
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	for name, value := range map[string]string{"ENDPOINT": front.URL, "INSTANCE": e.Instance,
		"ACCESS_KEY_ID": e.AccessKeyID, "ACCESS_KEY_SECRET": e.AccessKeySecret} {
		t.Setenv("TABLESTORE_"+name, value)
	}
	return e
}

// fill puts rows with cells that live for a minute, for nearly a day, or of both kinds, and rows without cells.
func (e *expiring) fill(t *testing.T, name string, rows int) {
	now := e.Now().UnixMilli()
	for i := range rows {
		e.put(t, name, i, func(c *tablestore.PutRowChange) {
			if i%4 < 2 {
				c.AddColumnWithTimestamp("v", int64(1), now-86_340_000)
				c.AddColumnWithTimestamp("old", "x", now-86_340_000)
			}
			if i%4 == 0 || i%4 == 2 {
				c.AddColumnWithTimestamp("v", int64(2), now)
			}
		})
	}
}

func (e *expiring) put(t *testing.T, name string, id int, cells func(*tablestore.PutRowChange)) {
	t.Helper()
	key := new(tablestore.PrimaryKey)
	key.AddPrimaryKeyColumn("id", int64(id))
	c := &tablestore.PutRowChange{TableName: name, PrimaryKey: key}
	c.SetCondition(tablestore.RowExistenceExpectation_IGNORE)
	cells(c)
	conformance.Must(t, conformance.ErrorOf(e.Client().PutRow(&tablestore.PutRowRequest{PutRowChange: c})))
}

func TestCellsExpiringDuringALoadAreCounted(t *testing.T) {
	tsimport := commandsIn(t)
	const rows = 40
	for name, move := range map[string]func(e *expiring){
		"copy":                func(*expiring) { tsimport(0, "copy", "t", "to", "--verify", "-q") },
		"copy --drop-expired": func(*expiring) { tsimport(0, "copy", "t", "to", "--drop-expired", "--verify", "-q") },
		"small batches": func(*expiring) {
			tsimport(0, "copy", "t", "to", "--batch-bytes", "200", "--concurrency", "1", "-q")
		},
		"sync": func(*expiring) {
			tsimport(0, "sync", "ots://"+os.Getenv("TABLESTORE_INSTANCE")+"/t", "-t", "to", "-q")
		},
		"load of an archive": func(*expiring) { tsimport(0, "load", "kept", "-t", "to", "-q") },
		"load by a job dir": func(*expiring) {
			tsimport(0, "load", "kept", "-t", "to", "--job-dir", "jobs", "-q")
			tsimport(0, "work", "--job-dir", "jobs", "-q")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			e := newExpiring(t)
			for _, table := range []string{"t", "to"} {
				tsimport(0, "table", "create", table, "--pk", "id:integer", "--ttl", "86400", "--max-versions", "3")
			}
			e.fill(t, "t", rows)
			e.put(t, "to", 1, func(c *tablestore.PutRowChange) { c.AddColumn("v", int64(9)) }) // overwrites the row
			tsimport(0, "export", "-t", "t", "-o", "kept/", "-q")
			e.next = 2 * time.Minute
			move(e)
			export := func(table string) string {
				return tsimport(0, "export", "-t", table, "--format", "jsonl", "--typed", "-q")
			}
			conformance.Equal(t, export("to"), export("t"), "the table")
			var sum struct {
				Read, Written, Rejected, Superseded int64
				Expired                             int64 `json:"expired_cells"`
				Put                                 struct {
					Expired int64 `json:"expired_cells"`
				} `json:"put_load"`
			}
			found, _ := filepath.Glob("tsimport-runs/*/summary.json")
			if job, _ := filepath.Glob("jobs/summary.json"); len(job) > 0 {
				found = job
			}
			conformance.MustTrue(t, len(found) != 0, "there is no summary")
			text, err := os.ReadFile(found[len(found)-1])
			if err == nil {
				err = json.Unmarshal(text, &sum)
			}
			want := int64(rows)
			conformance.True(t, err == nil && sum.Rejected == 0 && sum.Expired+sum.Put.Expired == want && sum.Read == rows &&
				sum.Written == rows, "%v: %s", err, fmt.Sprintf("%+v", sum))
		})
	}
}
