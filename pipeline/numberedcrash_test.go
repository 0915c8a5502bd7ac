package pipeline

import (
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tsimport/engine/faults"
	"tsimport/internal/table"
	"tsimport/pipeline/checkpoint"
)

// TestANumberedLoadThatIsKilledHasEachRecordOnce kills loads into a table whose rows the service numbers, as
// TestAKilledLoadResumesAsIfItHadNotBeenKilled does, while answers are lost, requests are applied late and reads fail.
func TestANumberedLoadThatIsKilledHasEachRecordOnce(t *testing.T) { killNumbered(t, newWorld) }

// TestANumberedLoadResumesAfterLossesOfPower does so while the power of the store fails too.
func TestANumberedLoadResumesAfterLossesOfPower(t *testing.T) { killNumbered(t, newPoweredWorld) }

// TestANumberedLoadResumesAfterALossOfPowerOfItsOwnStore does so in a store of the load's process that acknowledges what is
// not on the disk.
func TestANumberedLoadResumesAfterALossOfPowerOfItsOwnStore(t *testing.T) {
	killNumbered(t, newLazyWorld)
}

func killNumbered(t *testing.T, start func(*testing.T) *world) {
	if *seedFlag != 0 {
		numberedKilled(t, *seedFlag, start)
		return
	}
	for seed := range uint64(few(*powerSeeds)) {
		t.Run(fmt.Sprintf("seed %d", seed+1), func(t *testing.T) {
			t.Parallel()
			numberedKilled(t, seed+1, start)
		})
	}
}

func numberedKilled(t *testing.T, seed uint64, start func(*testing.T) *world) {
	rnd := rand.New(rand.NewPCG(seed, 19))
	w := start(t)
	keys := 10 + rnd.IntN(100)
	text := users(rnd, 100+rnd.IntN(500), keys)
	scheduled := rnd.IntN(2) == 0
	if scheduled {
		text = partlySorted(rnd, text)
	}
	c := &crashes{t: t, w: w, rnd: rnd, records: map[checkpoint.Position][]byte{}, bySent: map[checkpoint.Position]int{}}
	records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range records[1:] {
		c.records[checkpoint.At(0, int64(i))] = table.AppendKey(nil, table.Value{Type: table.String, Bytes: []byte(r[0])})
	}
	c.cfg = w.numbered(w.file("in.csv", text))
	if scheduled {
		c.cfg.order, c.cfg.sectionRows = orderAlways, 1+rnd.IntN(40)
		if rnd.IntN(2) == 0 {
			c.cfg.switchAfter = 1 + rnd.IntN(8)
		}
	}
	cfg := &c.cfg
	cfg.RunDir = filepath.Join(w.dir, "killed")
	cfg.Write.Concurrency, cfg.Write.BatchRows = 1+rnd.IntN(16), 1+rnd.IntN(50)
	cfg.Read.SplitBytes = 64 + rnd.IntN(4<<10)
	cfg.surveyEvery, cfg.Checkpoint.Every, cfg.allowance = 2*time.Millisecond, time.Duration(1+rnd.IntN(10))*time.Millisecond, int64(1+rnd.IntN(50))
	cfg.pacer = func() pacer { return restless{} }
	cfg.Resume.Look = true
	cfg.onSnapshot = c.compare
	over := w.failNumbered(rnd, keys)
	w.grid.endanger(rnd, cfg)
	r := c.run()
	w.grid.end()
	over.Store(true)
	w.wantNumbered(text, *cfg)
	if r.Read != int64(len(records)-1) || r.Written != r.Read {
		t.Errorf("%d read, %d written of %d", r.Read, r.Written, len(records)-1)
	}
	if c.fresh > 0 {
		t.Errorf("%d rows that had been sent were sent again and nothing said that they may have been", c.fresh)
	}
	t.Logf("%d rows, %d attempts, %d sent again, %d searched, %d found, %d deleted, %d recuts, power lost %d times",
		r.Read, c.attempts, c.replayed, r.Searched, r.Found, r.SurplusDeleted, r.Recuts, w.grid.lost())
	if t.Failed() {
		t.Logf("repeat with -run %s -seed %d", strings.SplitN(t.Name(), "/", 2)[0], seed)
	}
}

// failNumbered lets writes, reads and deletions fail in passing ways, until it is over: a reading of the partition map may
// outlive a load.
func (w *world) failNumbered(rnd *rand.Rand, keys int, also ...string) (over *atomic.Bool) {
	over = new(atomic.Bool)
	share := rnd.Float64() * 0.15
	source := rand.New(rand.NewPCG(rnd.Uint64(), 1))
	var mu sync.Mutex
	fails := append(also, "BatchWriteRow", "GetRange", "DeleteRow")
	decide := w.splitting(rnd, keys, func(r faults.Request) faults.Fault {
		mu.Lock()
		defer mu.Unlock()
		if source.Float64() >= share {
			return faults.Fault{}
		}
		f := passingFaults[source.IntN(len(passingFaults))]
		if r.Operation != "BatchWriteRow" && f.Action == faults.RefuseRows {
			return faults.Fault{Action: faults.Refuse, Code: "OTSServerBusy"}
		}
		return f
	})
	w.plan.Change(func(op string) bool { return slices.Contains(fails, op) }, func(r faults.Request) faults.Fault {
		if over.Load() {
			return faults.Fault{}
		}
		return decide(r)
	})
	return over
}
