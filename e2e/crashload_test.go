package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

var (
	crashRounds = flag.Int("crash-rounds", 1, "how many loads the tests of crashed loads crash, each several times")
	crashSeed   = flag.Uint64("crash-seed", 1, "the seed of the first of them")
)

const crashTable = "crashed"

// Times of crashed loads. A request that was let through is applied within crashSettle; an attempt that takes longer than
// crashPatience hangs.
const (
	crashSettle   = 2 * time.Second
	crashPatience = 10 * time.Minute
)

// crashLoad is a load that is resumed again and again. Its process, the engine or both are killed at random moments.
type crashLoad struct {
	t     *testing.T
	rnd   *rand.Rand
	seed  uint64
	dir   string
	args  []string
	store string // of the engine
	rows  int
	// inputs, if not empty, holds them for each new working folder: an attempt's vanishes with it, and --state is what is left.
	inputs string

	server   *served
	simulate []string // flags of serve
	at       int64    // the timestamp of cells that create writes; 0 is that of the service
	address  string   // of serve, the same each time

	attempts, loadKills, engineKills, early, late int
}

func newCrashLoad(t *testing.T, seed uint64) *crashLoad {
	c := &crashLoad{t: t, seed: seed, rnd: rand.New(rand.NewPCG(seed, 77)), dir: t.TempDir(), store: filepath.Join(t.TempDir(), "store")}
	t.Cleanup(func() {
		if c.server != nil && !c.server.stopped {
			c.server.kill(t)
		}
		if t.Failed() {
			t.Logf("repeat with -run '%s' -crash-rounds 1 -crash-seed %d", strings.SplitN(t.Name(), "/", 2)[0], seed)
		}
	})
	return c
}

// drawEngine draws how the engine behaves: partitions that split, capacity, requests that are refused, lost, applied late.
func (c *crashLoad) drawEngine() {
	kinds := []string{"apply-late", "drop-after", "error-after", "drop-before", "refuse", "refuse-rows", "truncate-body", "bad-body"}
	c.rnd.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	c.simulate = []string{
		"--splits", fmt.Sprintf("%dms:%dms:%d", 50+c.rnd.IntN(500), c.rnd.IntN(60), 2+c.rnd.IntN(12)),
		"--latency", "3ms", "--jitter", "0.9", "--partition-wcu", fmt.Sprint(500 + c.rnd.IntN(1500)),
		"--fault-rate", fmt.Sprint(0.25 * c.rnd.Float64()), "--fault-kinds", strings.Join(kinds[:1+c.rnd.IntN(len(kinds))], ","),
		"--fault-delay", "30ms",
	}
}

// serve starts the engine on the store as it is; simulate says whether it is to make trouble.
func (c *crashLoad) serve(simulate bool) {
	c.t.Helper()
	args := []string{"--quiet", "--store", c.store}
	if c.address != "" {
		args = append(args, "--listen", c.address)
	}
	if simulate {
		args = append(args, append(slices.Clone(c.simulate), "--random-seed", fmt.Sprint(c.rnd.Uint32()))...)
	}
	s, err := launch(args...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.server = s
	at, err := url.Parse(s.URL)
	if err != nil {
		c.t.Fatal(err)
	}
	c.address = at.Host
}

// table is the loaded table, as the SDK sees it.
func (c *crashLoad) table() *table {
	s := c.server
	return &table{service: &service{TableStoreClient: newClient(s.URL, s.Instance, s.AccessKeyID, s.AccessKeySecret)}, name: crashTable}
}

// create makes a table with rows in it.
func (c *crashLoad) create(name string, rows map[crashKey]map[string]any) {
	tb := c.table()
	tb.name = name
	meta := &tablestore.TableMeta{TableName: name}
	meta.AddPrimaryKeyColumn("pk1", tablestore.PrimaryKeyType_STRING)
	meta.AddPrimaryKeyColumn("pk2", tablestore.PrimaryKeyType_INTEGER)
	must(c.t, tb.create(meta, newOptions(-1, 1)))
	var changes []tablestore.RowChange
	for k, cells := range rows {
		var all []cell
		for name, v := range cells {
			all = append(all, cell{Name: name, Value: v, Timestamp: c.at})
		}
		changes = append(changes, tb.put(tb.key(k.user, k.n), all...))
	}
	tb.load(c.t, changes...)
}

func (c *crashLoad) command(args ...string) *exec.Cmd {
	cmd := exec.Command(binary, args...)
	cmd.Dir = c.dir
	s := c.server
	cmd.Env = append(os.Environ(),
		"TABLESTORE_ENDPOINT=http://"+c.address, "TABLESTORE_INSTANCE="+s.Instance,
		"TABLESTORE_ACCESS_KEY_ID="+s.AccessKeyID, "TABLESTORE_ACCESS_KEY_SECRET="+s.AccessKeySecret,
	)
	if every := c.rnd.IntN(300); every >= 60 { // else as it is by default
		cmd.Env = append(cmd.Env, fmt.Sprintf("TSIMPORT_CHECKPOINT_EVERY=%dms", every-59))
	}
	return cmd
}

// strike is a crash that is drawn: when, and of what.
type strike struct {
	after        time.Duration // once the rows are final
	final        int64         // rows; -1 is from the start of the process
	load, engine bool
}

// vanish replaces the working folder by a new one of the same name, with the inputs only.
func (c *crashLoad) vanish() {
	c.t.Helper()
	if c.inputs == "" {
		return
	}
	must(c.t, os.RemoveAll(c.dir))
	must(c.t, os.Mkdir(c.dir, 0o700))
	entries, err := os.ReadDir(c.inputs)
	must(c.t, err)
	for _, e := range entries {
		must(c.t, os.Link(filepath.Join(c.inputs, e.Name()), filepath.Join(c.dir, e.Name())))
	}
}

func (c *crashLoad) drawStrike() strike {
	s := strike{load: true}
	switch c.rnd.IntN(5) {
	case 0:
		s.final, s.after = -1, time.Duration(c.rnd.IntN(600))*time.Millisecond // before it has begun, or just then
	case 1:
		s.final, s.after = c.lastRows(), time.Duration(c.rnd.Int64N(int64(crashSettle*5/4))) // while it waits, or ends
	default:
		s.final, s.after = c.rnd.Int64N(int64(c.rows)), time.Duration(c.rnd.IntN(30))*time.Millisecond
	}
	switch c.rnd.IntN(4) {
	case 0:
		s.load, s.engine = false, true
	case 1:
		s.engine = true
	}
	return s
}

// lastRows is how many rows are final of a load that is about to end.
func (c *crashLoad) lastRows() int64 { return int64(c.rows) * 9 / 10 }

// run crashes attempts until one comes to its end, and returns the folder of the run.
func (c *crashLoad) run() string {
	c.t.Helper()
	strikes := 2 + c.rnd.IntN(6)
	if c.inputs != "" {
		strikes = 1 + c.rnd.IntN(3) // each costs a lease
	}
	for c.attempts < 30 {
		c.attempts++
		args := c.args
		if c.rnd.IntN(3) == 0 && c.inputs == "" && finalRows(c.dir) >= 0 {
			args = []string{"resume"}
		}
		c.vanish()
		var done bool
		if strikes, done = c.attempt(args, strikes); done || c.finished() {
			runs, err := filepath.Glob(filepath.Join(c.dir, "tsimport-runs", "*"))
			if err != nil || len(runs) == 0 {
				c.t.Fatalf("no run: %v", err)
			}
			return slices.Max(runs)
		}
	}
	c.t.Fatal("the load does not end")
	return ""
}

// attempt runs the command, and carries out strikes on it until it ends. It returns how many are left, and whether the load
// is done.
func (c *crashLoad) attempt(args []string, strikes int) (left int, done bool) {
	c.t.Helper()
	var stderr bytes.Buffer
	cmd := c.command(args...)
	cmd.Stderr = &stderr
	must(c.t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	engines := 0
	for ; strikes > 0; strikes-- {
		s := c.drawStrike()
		if c.await(s, ended) {
			break
		}
		switch {
		case s.final < 0:
			c.early++
		case s.final == c.lastRows():
			c.late++
		}
		if s.load {
			c.loadKills++
			must(c.t, unlessEnded(cmd.Process.Kill()))
		}
		if s.engine {
			c.engineKills++
			engines++
			c.server.kill(c.t)
		}
		if s.load {
			<-ended
		}
		if s.engine {
			c.serve(true)
		}
		if s.load {
			return strikes - 1, false
		}
	}
	hang := time.NewTimer(crashPatience)
	defer hang.Stop()
	select {
	case err := <-ended:
		ended <- err
	case <-hang.C:
		_ = cmd.Process.Kill() // it hangs
		c.t.Fatalf("attempt %d hangs: %s", c.attempts, stderr.Bytes())
	}
	switch code := cmd.ProcessState.ExitCode(); {
	case code == 0, code == 3:
		return strikes, true
	case code == 1 && engines > 0:
		c.t.Logf("an attempt failed without the engine: %s", bytes.TrimSpace(stderr.Bytes()))
		return strikes, false
	default:
		c.t.Fatalf("attempt %d: exit code %d: %s", c.attempts, code, stderr.Bytes())
		return 0, false
	}
}

// await returns when the moment of the strike has come, or true when the attempt has ended before.
func (c *crashLoad) await(s strike, ended chan error) bool {
	look := time.NewTicker(3 * time.Millisecond)
	defer look.Stop()
	hang := time.NewTimer(crashPatience)
	defer hang.Stop()
	for s.final >= 0 && finalRows(c.dir) <= s.final {
		select {
		case err := <-ended:
			ended <- err
			return true
		case <-hang.C:
			return false // whoever waits for its end will say so
		case <-look.C:
		}
	}
	pause := time.NewTimer(s.after)
	defer pause.Stop()
	select {
	case err := <-ended:
		ended <- err
		return true
	case <-pause.C:
		return false
	}
}

// crashSummary is the part of a summary that the tests look at.
type crashSummary struct {
	State                                           string
	Read, Written, Rejected, Superseded, Unfinished int
	Attempts, Replayed                              int
	Searched, Found                                 int
	SurplusDeleted                                  int `json:"surplus_deleted"`
	SpilledRows                                     int `json:"spilled_rows"`
}

// finished reports whether the newest run is: its process was killed when there was nothing left to do.
func (c *crashLoad) finished() bool {
	runs, err := filepath.Glob(filepath.Join(c.dir, "tsimport-runs", "*"))
	if err != nil || len(runs) == 0 {
		return false
	}
	return c.summary(slices.Max(runs)).State == "finished"
}

func (c *crashLoad) summary(run string) (sum crashSummary) {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(run, "summary.json"))
	if os.IsNotExist(err) {
		return sum
	}
	must(c.t, err)
	if err := json.Unmarshal(text, &sum); err != nil {
		c.t.Fatal(err)
	}
	return sum
}

// unlessEnded is what went wrong with a signal, if the process was there to get it: a load may end by itself just before.
func unlessEnded(err error) error {
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}
