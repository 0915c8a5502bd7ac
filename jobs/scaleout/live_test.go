package scaleout

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"example.com/tsimport/engine/enginetest"
	"example.com/tsimport/reader/source/sourcetest"
)

// refusedText is what a row has that the service of the tests refuses.
const refusedText = "a text that the service refuses"

// refuses answers a request with such a row, nil for any other.
func refuses(r *http.Request, body []byte) *http.Response {
	if r.URL.Path != "/BatchWriteRow" || !bytes.Contains(body, []byte(refusedText)) {
		return nil
	}
	answer := protowire.AppendTag(nil, 1, protowire.BytesType)
	answer = protowire.AppendString(answer, "OTSParameterInvalid")
	answer = protowire.AppendTag(answer, 2, protowire.BytesType)
	answer = protowire.AppendString(answer, "A row is bad.")
	return enginetest.Sign(&http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{}, Request: r}, r.URL.Path, answer)
}

// TestAnyOrderOfTasksLoadsALiveSource is TestAnyOrderOfTasks with a table as the source, of which some rows change, come and go while it is
// read, and the service refuses some. Each row that did not change must be there as it is, each other one as it was at some moment, and each
// record must be counted once.
func TestAnyOrderOfTasksLoadsALiveSource(t *testing.T) {
	eachSeed(t, liveJob)
}

func liveJob(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 5))
	w := newWorld(t)
	rows := 1 + rnd.IntN(600)
	of := sourcetest.NewKeyed("live", rows)
	of.Live, of.Parts, of.Page = true, 1+rnd.IntN(12), 1+rnd.IntN(60)
	w.source = of
	w.verify = rnd.IntN(2) == 0
	past := map[int64][]string{} // texts that each row has had
	bad := map[int64]bool{}
	for id, text := range of.Rows() {
		if rnd.IntN(50) == 0 {
			text = refusedText
			of.Put(id, text)
			bad[id] = true
		}
		past[id] = []string{text}
	}
	workers := 1 + rnd.IntN(4)
	w.planned(func(r *Request) { r.Workers, r.Verify = workers, w.verify })
	changes := rand.New(rand.NewPCG(rnd.Uint64(), 9))
	change := func() { // only rows that are not refused
		id := int64(changes.IntN(rows*10 + 20))
		if past[id] == nil {
			past[id] = []string{""}
		}
		switch {
		case bad[id]:
		case changes.IntN(3) == 0:
			of.Delete(id)
			past[id] = append(past[id], "")
		default:
			text := fmt.Sprintf("changed %d", changes.Uint64())
			past[id] = append(past[id], text)
			of.Put(id, text)
		}
	}
	changing, stop := context.WithCancel(t.Context())
	var processes, changer sync.WaitGroup
	changer.Go(func() {
		for changing.Err() == nil {
			change()
			time.Sleep(50 * time.Millisecond)
		}
	})
	for n := range 2 + rnd.IntN(5) {
		acts := []int{-1, rnd.IntN(200), rnd.IntN(600)}[rnd.IntN(3)]
		p := w.start(fmt.Sprintf("process %d", n), rnd.Uint64(), acts, []float64{0, 0.005}[rnd.IntN(2)])
		do := someTasks(rand.New(rand.NewPCG(rnd.Uint64(), 3)))
		processes.Go(func() { p.tries(do) })
	}
	s, err := w.work()
	stop()
	changer.Wait()
	must(t, err)
	w.checkLive(s, past, bad)
	processes.Wait()
	time.Sleep(10 * time.Minute) // requests that nobody waits for any more
	w.checkLive(s, past, bad)
}

// checkLive compares the ledger and the table with what the rows of the source were.
func (w *world) checkLive(s *Summary, past map[int64][]string, bad map[int64]bool) {
	w.t.Helper()
	got := w.rows()
	if !s.Live || s.Read != s.Written+s.Rejected || s.Written != int64(len(got)) || s.Rejected != int64(len(bad)) || s.Superseded != 0 {
		w.t.Errorf("live %v: %d read, %d written, %d rejected, %d superseded; the table has %d rows, and %d are bad", s.Live, s.Read, s.Written, s.Rejected, s.Superseded, len(got), len(bad))
	}
	if c := s.Compared; w.verify != (c != nil) || c != nil && (c.Compared != s.Written || c.Missing+c.Different+c.Surplus > 0) {
		w.t.Errorf("compared: %+v", c)
	}
	for id, texts := range past {
		text, there := got[fmt.Sprint(id)]
		delete(got, fmt.Sprint(id))
		switch {
		case bad[id]:
			if there {
				w.t.Errorf("row %d was to be refused, and is there", id)
			}
		case !there && !slices.Contains(texts, ""):
			w.t.Errorf("row %d is missing", id)
		case there && !slices.Contains(texts, text):
			w.t.Errorf("row %d is %q, which it never was: %q", id, text, texts)
		}
	}
	for id, text := range got {
		w.t.Errorf("row %s is there, as %q, and never was in the source", id, text)
	}
	w.checkLiveRejects(bad)
}

// checkLiveRejects checks that the rejected rows are kept as lines of JSON, each once, so that they can be loaded again.
func (w *world) checkLiveRejects(bad map[int64]bool) {
	w.t.Helper()
	text, err := w.store.Get(context.Background(), "rejects.ndjson")
	if err != nil && len(bad) > 0 {
		w.t.Errorf("the rejects: %v", err)
	}
	kept := map[int64]bool{}
	for line := range strings.Lines(string(text)) {
		var row struct {
			ID   int64
			Text string
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil || !bad[row.ID] || kept[row.ID] || row.Text != refusedText {
			w.t.Errorf("%q is kept among the rejects: %v", line, err)
		}
		kept[row.ID] = true
	}
	if len(kept) != len(bad) {
		w.t.Errorf("%d rejects are kept, want %d", len(kept), len(bad))
	}
}
