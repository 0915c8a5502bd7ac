package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/conformance"
)

// aging is a server with tables of four months, three of them expired, and the actions due.
type aging struct {
	*place
	server  *served
	args    []string
	archive []string // the tables that must be archived in the end, of each of which there is an archive in before
	old     string   // where to
}

func newAging(t *testing.T, interval string) *aging { return newAgingTo(t, interval, "old") }

func newAgingTo(t *testing.T, interval, old string) *aging {
	server := startServe(t, "--quiet", "--throughput-interval", interval)
	a := &aging{place: newPlace(t, server.env()...), server: server, old: old}
	a.write("policy.yaml", "period: month\nclasses:\n  - {up_to: 3, reserved: {read: 5, write: 9}, ttl: 864000}\n  - "+
		"{archive: '"+old+"'}\n")
	for i, month := range []string{"202401", "202402", "202403", "202406"} {
		tb := server.table("c_" + month)
		meta := &tablestore.TableMeta{TableName: tb.name}
		meta.AddPrimaryKeyColumn("pk1", tablestore.PrimaryKeyType_INTEGER)
		must(t, tb.create(meta, 1))
		var changes []tablestore.RowChange
		for id := range 20 * (i + 1) {
			changes = append(changes, tb.put(tb.key(id), c("v", fmt.Sprintf("%s-%d", month, id)), c("b", []byte{0, byte(id)})))
		}
		tb.load(t, changes...)
		if month < "202404" {
			a.archive = append(a.archive, tb.name)
			a.run(0, "export", "--table", tb.name, "-o", "before/"+tb.name+"/")
		}
	}
	a.args = []string{"age", "--policy", "policy.yaml", "--table", "c_{month}", "--now", "2024-07-15T00:00:00Z",
		"--apply", "--drop-expired", "--throughput-interval", "0s"}
	return a
}

// TestAKilledAgeIsFinishedByTheNext kills age after its first lines; lifecycle/apply tests every other moment.
func TestAKilledAgeIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	newAging(t, "0s").killedAndFinished()
}

// TestAKilledAgeIsFinishedByTheNextInAStoreOfObjects: the store refuses requests and loses answers.
func TestAKilledAgeIsFinishedByTheNextInAStoreOfObjects(t *testing.T) {
	t.Parallel()
	a := newAgingTo(t, "0s", "s3://bucket/old")
	objects := a.bucket(t, "bucket")
	unreliable(objects, 5)
	a.killedAndFinished()
	a.run(0, "load", "s3://bucket/old/c_202402", "--table", "c_202402", "--create", "--verify")
	a.ends(0, []string{"verify", "before/c_202402", "--table", "c_202402", "--extra", "fail"})
}

func (a *aging) killedAndFinished() {
	t := a.t
	t.Helper()
	killed := a.start(a.args...)
	killed.says("^.+$", 2)
	killed.kill()
	var result struct {
		Tables []struct{ Table, State string }
	}
	must(t, json.Unmarshal([]byte(a.output(append(a.args, "--json")...)), &result))
	for _, table := range result.Tables {
		conformance.True(t, table.State == "done" || table.State == "unchanged", "table %s is %s", table.Table, table.State)
	}
	a.check()
}

func TestAWaitingAgeCanBeStoppedAndContinued(t *testing.T) {
	t.Parallel()
	a := newAging(t, "0s")
	// The creation counts as a change, so the throughput of the youngest table has to wait.
	cmd := a.command(append(slices.Clone(a.args[:len(a.args)-1]), "1h", "--json")...)
	out := new(strings.Builder)
	cmd.Stdout = out
	r := begin(t, cmd)
	r.says("waiting ", 1)
	r.signal(os.Interrupt)
	code := r.wait()
	var stopped struct {
		Error    string
		ExitCode int `json:"exit_code"`
		Tables   []struct{ Table, State string }
	}
	must(t, json.Unmarshal([]byte(out.String()), &stopped))
	conformance.True(t, code == 130 && stopped.ExitCode == 130 && strings.Contains(stopped.Error, "interrupt") &&
		fmt.Sprint(stopped.Tables) == "[{c_202401 done} {c_202402 done} {c_202403 done} {c_202406 planned}]",
		"exit code %d, %+v", code, stopped)
	a.run(0, a.args...)
	a.check()
}

func (a *aging) check() {
	t := a.t
	t.Helper()
	if a.old == "old" {
		conformance.Equal(t, len(a.glob("old/*/manifest.json")), len(a.archive), "archives")
	}
	for _, name := range a.archive {
		a.ends(0, []string{"verify", a.old + "/" + name, "--archive", "before/" + name, "--extra", "fail"})
	}
	tables := conformance.Try(a.server.client().ListTable()).Must(t)
	conformance.Equal(t, fmt.Sprint(tables.TableNames), "[c_202406]", "tables %v", tables.TableNames)
	d := conformance.Try(a.server.client().DescribeTable(&tablestore.DescribeTableRequest{TableName: "c_202406"})).Must(t)
	conformance.True(t, d.ReservedThroughput.Readcap == 5 && d.ReservedThroughput.Writecap == 9 &&
		d.TableOption.TimeToAlive == 864000, "%+v, %+v", d.ReservedThroughput, d.TableOption)
}
