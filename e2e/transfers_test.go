//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/mysql/mysqltest"
	"example.com/tsimport/reader/postgres/pgtest"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestUnfaithfulCopiesAreRefused(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.fill("t", 0, 300)
	for _, table := range []string{
		"numbered --pk pk1:string --pk pk2:auto", "other --pk n:integer --max-versions 4",
		"texts --pk pk1:string --pk pk2:string --max-versions 4",
		"old --pk pk1:string --pk pk2:integer --max-versions 4 --max-deviation 1",
	} {
		p.run(0, append([]string{"table", "create"}, strings.Fields(table)...)...)
	}
	before := dump(t, p.a, "t")
	for _, tt := range []struct{ args, says string }{
		{"t t", "source and target are the same table"},
		{"t ots://" + p.a.Instance + "/t", "source and target are the same table"},
		{"none new --create", "the source, table none, does not exist"},
		{"t new", "table new does not exist"},
		{"t", "copy takes two tables"},
		{"t new --create --pk h:string=md5(pk1,1)", "would be lost"},
		{"t other", "table other has a different primary key (n integer) than t (pk1 string, pk2 integer)"},
		{"t texts --pk pk1 --pk pk2", "define it with --pk, with types"},
		{"t old", "has cells that the target does not accept"},
		{"t new --create --from-key b --to-key a,3", "no key is in that range"},
		{"t new --create --columns a,,b", "a name is empty"},
		{"t new --create --max-versions 1", "--versions 1"},
		{"numbered new --create", "--pk pk1:string --pk pk2:integer"},
		{"t new --create --where text(pk2)", "not a condition"},
		{"t new --create --since yesterday", "--since"},
		{"t new --create --from-key a,b", "is not an integer"},
		{"t ots://c@x/new --create", "ots://c@x/new: no endpoint: set TABLESTORE_ENDPOINT_C"},
		{"t ots://id:secret@x/new", "want ots://INSTANCE/TABLE or ots://PROFILE@INSTANCE/TABLE"},
	} {
		said := p.ends(2, append([]string{"copy", "-q"}, strings.Fields(tt.args)...), tt.says)
		conformance.True(t, strings.Count(said, "\n") == 1 && !strings.Contains(said, "secret@"), "%s: %s", tt.args, said)
	}
	conformance.Equal(t, differs(before, dump(t, p.a, "t")), "", "differs")
	p.env = append(p.env, "TABLESTORE_ACCESS_KEY_SECRET_B=wrong")
	p.ends(5, []string{"copy", "-q", "t", p.inB("t")}, "target, instance")
	p.ends(5, []string{"copy", "-q", p.inB("t"), "t"}, "source, instance")
}

func TestTableIsCopiedWithIndexes(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.indexed("t", 300)
	p.ends(0, []string{"copy", "t", p.inB("t"), "--create", "--verify"},
		"gets the global index t_by_city with the key city, pk2 and the columns n when all rows are written",
		"created the 2 secondary indexes of the table")
	p.sameIndexes(p.a, p.b, "t", "t")

	// Within one instance, the names of the indexes are taken.
	p.ends(2, []string{"copy", "t", "u", "--create"}, "--rename-index t_by_city=NAME")
	p.run(2, "table", "describe", "u")
	renamed := []string{"--rename-index", "t_by_city=u_by_city", "--rename-index", "t_by_n=u_by_n"}
	p.ends(0, append([]string{"copy", "t", "u", "--create"}, renamed...), "created the 2 secondary indexes of the table")
	p.sameIndexes(p.a, p.a, "t", "u")
	p.ends(0, []string{"table", "describe", "u"}, "global index u_by_city with the key city, pk2 and the columns n")

	// An archive has the indexes, too.
	p.run(0, "export", "--table", "t", "-o", "kept/")
	p.ends(2, []string{"load", "kept", "--table", "v", "--create"}, "--rename-index t_by_city=NAME")
	for i := range renamed {
		renamed[i] = strings.ReplaceAll(renamed[i], "=u", "=v")
	}
	p.run(0, append([]string{"load", "kept", "--table", "v", "--create", "--verify"}, renamed...)...)
	p.sameIndexes(p.a, p.a, "t", "v")
	p.ends(0, strings.Fields("copy t w --create --exclude n --rename-index t_by_city=w_by_city"),
		"lacks columns of the index: n; create it")
	for args, says := range map[string]string{
		"--create --max-versions 3":      "keeps one version of a cell",
		"--create --ttl 86400":           "expire only if it refuses updates",
		"--create --rename-index no=yes": "has no index of that name",
	} {
		p.ends(2, append([]string{"copy", "t", "x"}, strings.Fields(args)...), says)
	}
}

func TestWritesToIndexAreRefused(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.indexed("t", 100)
	p.write("in.csv", "city,pk2,pk1,n\nx,1,a,2\ny,2,b,3\n")
	const of = " --pk city:string --pk pk2:integer --pk pk1:string -q"
	p.run(0, strings.Fields("load in.csv --create --table s"+of)...)
	before := dump(t, p.a, "t_by_city")
	for _, command := range []string{"load in.csv --table t_by_city" + of, "copy s t_by_city -q",
		"load in.csv --table t_by_city --mode delete --fresh" + of, "sync in.csv --table t_by_city" + of} {
		p.ends(1, strings.Fields(command), "the table is a secondary index")
	}
	conformance.Equal(t, differs(before, dump(t, p.a, "t_by_city")), "", "differs")
	p.run(0, "copy", "t_by_city", p.inB("flat"), "--create", "--verify") // an index can be read
}

// TestHostileNetworkChangesNoRow runs the commands on a network that cuts, delays, changes and repeats traffic.
func TestHostileNetworkChangesNoRow(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.fill("t", 0, movedRows)
	for _, name := range []string{"loaded", "archived", "numbered", "copied", "synced"} {
		for seed := *first; seed < *first+uint64(*rounds); seed++ {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				t.Parallel()
				var without []string
				if name == "numbered" {
					without = []string{"replayed"} // no load can detect a replayed request
				}
				draw := func() func(string) trouble { return drawTroubles(seed, 12, without...) }
				m := p.move(t, fmt.Sprint(name, seed), seed, draw)
				m.more = strings.Fields(fmt.Sprintf("--request-timeout %v --settle %v --batch-bytes 2KiB", troubledTimeout,
					troubledSettle))
				ways[name](m)
			})
		}
	}
}

// TestUnsignedAnswersDestroyNothing checks that TSIMPORT_UNSIGNED_ANSWERS does not apply to destructive operations.
func TestUnsignedAnswersDestroyNothing(t *testing.T) {
	t.Parallel()
	s := startServe(t, "--sync", "none")
	network := startProxy(t, s, func(string) trouble { return unsigned })
	p := newPlace(t, s.env()...)
	p.run(0, "table", "create", "t", "--pk", "id:string")
	for value, code := range map[string]int{"": 1, "accept": 0, "yes": 2} {
		p.env = append(s.env(), "TABLESTORE_ENDPOINT="+network.URL, "TSIMPORT_UNSIGNED_ANSWERS="+value)
		p.run(code, "table", "list")
		says := []string{"TSIMPORT_UNSIGNED_ANSWERS"}
		if value != "yes" {
			says = append(says, "has no signature")
		}
		p.ends(max(code, 1), []string{"table", "drop", "t", "--yes"}, says...)
		p.ends(max(code, 1), []string{"table", "delete", "t", "--prefix", "a"}, says...)
	}
}

// cutOver moves a table while eight sessions write to it. It loads the table and applies the changes that a real
// Debezium engine has reported since before the load. Then the writers stop, and it waits for the last change.
type cutOver struct {
	*testing.T
	session    func() (exec func(statement string) error) // opens a session
	row        func(query string) bool                    // reports whether the query returns a row
	address    string
	properties string // properties of the connector, in addition to common ones
	streams    string // a query that returns a row once the connector reads the log
	exec       func(statement string)
	next       atomic.Int64
	done       atomic.Int64 // number of statements in committed transactions
}

// TestTableMovesDuringWrites moves TSIMPORT_CUTOVER rows. make cutover runs it.
func TestTableMovesDuringWrites(t *testing.T) {
	rows, _ := strconv.Atoi(os.Getenv("TSIMPORT_CUTOVER"))
	if rows == 0 {
		t.Skip("it needs a real PostgreSQL, MariaDB and Debezium: make cutover")
	}
	_, err := os.Stat("debezium/target/lib")
	conformance.MustTrue(t, err == nil, "%v; make cutover builds it", err)
	t.Run("PostgreSQL", func(t *testing.T) {
		s := pgtest.Start(t)
		s.Exec("ALTER SYSTEM SET wal_level = 'logical'")
		s.Stop("fast")
		s.Go()
		session := func() func(string) error {
			conn, err := pgconn.Connect(context.Background(),
				fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", s.Port))
			must(t, err)
			return func(statement string) error {
				_, err := conn.Exec(context.Background(), statement).ReadAll()
				return err
			}
		}
		c := &cutOver{T: t, session: session, row: func(query string) bool { return len(s.Exec(query)) > 0 },
			address: s.Address("public.accounts"),
			properties: fmt.Sprintf(
				"connector.class=io.debezium.connector.postgresql.PostgresConnector\ndatabase.port=%d\ndatabase.user=postgres\ndatabase.dbname=postgres\nplugin.name=pgoutput\ntable.include.list=public.accounts\n", s.Port),
			streams: "SELECT 1 FROM pg_replication_slots WHERE active"}
		// The log must contain all columns, even if a key changes.
		c.move(rows, "INSERT INTO accounts SELECT n, 'owner ' || n, n / 7.0, now(), md5(n::text), n %% 2 = 0 FROM "+
			"generate_series(1, %d) n", "timestamptz", "ALTER TABLE accounts REPLICA IDENTITY FULL")
	})
	t.Run("MariaDB", func(t *testing.T) {
		s := mysqltest.Start(t)
		s.Options("--binlog-format=ROW")
		session := func() func(string) error {
			conn := conformance.Try(s.DB.Conn(context.Background())).Must(t)
			return func(statement string) error {
				_, err := conn.ExecContext(context.Background(), statement)
				return err
			}
		}
		c := &cutOver{T: t, session: session, row: func(query string) bool { return len(s.Rows(query)) > 0 },
			address: s.Address("accounts"),
			properties: fmt.Sprintf(
				"connector.class=io.debezium.connector.mariadb.MariaDbConnector\ndatabase.port=%d\ndatabase.user=root\ndatabase.server.id=%d\nschema.history.internal=io.debezium.relational.history.MemorySchemaHistory\ninclude.schema.changes=false\ndatabase.include.list=shop\n", s.Port, s.Port+1),
			streams: "SELECT 1 FROM information_schema.processlist WHERE command = 'Binlog Dump'"}
		c.move(rows, "INSERT INTO accounts SELECT seq, CONCAT('owner ', seq), seq / 7.0, now(6), md5(seq), seq %% 2 = 0 "+
			"FROM seq_1_to_%d", "timestamp(6) NULL")
	})
}

func (c *cutOver) move(rows int, fill, moment string, more ...string) {
	t, p := c.T, newPlace(c.T, startServe(c.T, "--sync", "none").env()...)
	first := c.session()
	c.exec = func(statement string) {
		err := first(statement)
		conformance.MustTrue(c, err == nil, "%s: %v", statement, err)
	}
	c.exec("CREATE TABLE accounts (id bigint PRIMARY KEY, owner varchar(40), amount decimal(14,2), at " + moment +
		", note text, active boolean DEFAULT true)")
	c.exec(fmt.Sprintf(fill, rows))
	for _, statement := range more {
		c.exec(statement)
	}
	c.next.Store(int64(rows))

	stream := c.engine(p)
	var writers sync.WaitGroup
	stop := make(chan struct{})
	for session := range 8 {
		writers.Go(func() { c.write(uint64(session), stop) })
	}
	p.run(0, "load", c.address, "--table", "accounts", "--create")
	during := c.done.Load()

	apply := p.command(strings.Fields("load - --mode changes --source-table accounts --table accounts --json --quiet")...)
	follow := &following{name: stream, end: make(chan struct{})}
	apply.Dir, apply.Stdin = p.dir, follow
	var summary, said bytes.Buffer
	apply.Stdout, apply.Stderr = &summary, &said
	must(t, apply.Start())
	c.until("3,000 statements while changes are applied", func() bool { return c.done.Load() >= during+3000 })
	c.until("the end of what has been written meanwhile", func() bool {
		info, err := os.Stat(stream)
		return err == nil && info.Size()-follow.read.Load() < 1<<20
	})

	compared := time.Now()
	p.ends(0, []string{"verify", c.address, "--table", "accounts", "--settle-for", "5m"}, "matches")

	stopped := time.Now()
	close(stop)
	writers.Wait()
	c.exec("INSERT INTO accounts (id) VALUES (-1)")
	c.until("the last change", func() bool {
		text, err := os.ReadFile(stream)
		return err == nil && bytes.Contains(text, []byte(`"id":-1,`))
	})
	close(follow.end)
	err := apply.Wait()
	conformance.MustTrue(t, err == nil, "%v: %s%s", err, summary.String(), said.String())
	pause := time.Since(stopped)
	p.ends(0, []string{"verify", c.address, "--table", "accounts"}, "matches")
	var r struct{ Read, Written int64 }
	must(t, json.Unmarshal(summary.Bytes(), &r))
	conformance.True(t, during != 0 && r.Written != 0 && r.Read == r.Written,
		"%d statements while the table was loaded, %d changes read and %d written", during, r.Read, r.Written)
	t.Logf("%d rows, %d statements while the table was loaded and %d in all, %d changes applied; compared in %.1f s "+
		"while all wrote; the writers stood still for %.1f s until the last change was applied, %.1f s with another "+
		"comparison",
		rows, during, c.done.Load(), r.Written, stopped.Sub(compared).Seconds(), pause.Seconds(),
		time.Since(stopped).Seconds())
}

func (c *cutOver) until(what string, is func() bool) {
	c.Helper()
	for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(50 * time.Millisecond) {
		conformance.MustTrue(c, !time.Now().After(end), "%s does not come", what)
	}
}

// engine starts a Debezium engine that writes the table's events to a file, and returns once it reads the log.
func (c *cutOver) engine(p *place) (file string) {
	p.write("engine.properties", `name=engine
offset.storage=org.apache.kafka.connect.storage.MemoryOffsetBackingStore
database.hostname=127.0.0.1
database.password=
topic.prefix=moving
snapshot.mode=no_data
column.propagate.source.type=.*
skipped.operations=none
value.converter.replace.null.with.default=false
`+c.properties)
	out := conformance.Try(os.Create(p.path("stream.json"))).Must(c.T)
	errs := conformance.Try(os.Create(p.path("engine.log"))).Must(c.T)
	engine := exec.Command("java", "-cp", "debezium/target/classes:debezium/target/lib/*", "Changes",
		p.path("engine.properties"))
	engine.Stdout, engine.Stderr = out, errs
	stdin := conformance.Try(engine.StdinPipe()).Must(c.T)
	must(c.T, engine.Start())
	c.Cleanup(func() {
		stdin.Close()
		_ = engine.Wait() // the engine may report that the server is gone
		if c.Failed() {
			text, _ := os.ReadFile(errs.Name())
			c.Logf("the engine: %.3000s", text)
		}
	})
	c.until("the connector", func() bool { return c.row(c.streams) })
	return out.Name()
}

// write runs transactions of one to five inserts, updates, deletions and key changes. One in ten is rolled back.
func (c *cutOver) write(session uint64, stop chan struct{}) {
	rnd, exec := rand.New(rand.NewPCG(session, 44)), c.session()
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(rnd.IntN(12)) * time.Millisecond): // in all, 1,000 statements per second
		}
		err := exec("BEGIN")
		n := 1 + rnd.IntN(5)
		for range n {
			if err == nil {
				err = exec(c.statement(rnd))
			}
		}
		if err != nil || rnd.IntN(10) == 0 { // including deadlocks
			_ = exec("ROLLBACK")
		} else if exec("COMMIT") == nil {
			c.done.Add(int64(n))
		}
	}
}

func (c *cutOver) statement(rnd *rand.Rand) string {
	id := 1 + rnd.Int64N(c.next.Load())
	switch rnd.IntN(10) {
	case 0, 1, 2:
		return fmt.Sprintf("INSERT INTO accounts VALUES (%d, 'new', %d, CURRENT_TIMESTAMP, '%s', true)", c.next.Add(1),
			rnd.IntN(1e9), strings.Repeat("note ", rnd.IntN(2000)))
	case 3, 4, 5:
		return fmt.Sprintf("UPDATE accounts SET amount = amount + %d WHERE id = %d", rnd.IntN(100), id)
	case 6:
		return fmt.Sprintf("UPDATE accounts SET note = NULL, active = NULL, at = CURRENT_TIMESTAMP WHERE id = %d", id)
	case 7, 8:
		return fmt.Sprintf("DELETE FROM accounts WHERE id = %d", id)
	}
	return fmt.Sprintf("UPDATE accounts SET id = %d WHERE id = %d", c.next.Add(1), id)
}

type following struct {
	name string
	end  chan struct{}
	file *os.File
	read atomic.Int64 // bytes
}

func (f *following) Read(b []byte) (n int, err error) {
	if f.file == nil {
		if f.file, err = os.Open(f.name); err != nil {
			return 0, err
		}
	}
	for {
		ended := false
		select {
		case <-f.end:
			ended = true
		default:
		}
		if n, err = f.file.Read(b); err != io.EOF || ended {
			f.read.Add(int64(n))
			return n, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}
