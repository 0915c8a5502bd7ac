package pipeline

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"example.com/tsimport/pipeline/lanes"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/keep"
)

func (w *world) admin() *client.Admin {
	w.t.Helper()
	return &client.Admin{Client: w.sdk(), Context: context.Background()}
}

// remake drops a table and makes it again as it was.
func (w *world) remake(name string) {
	w.t.Helper()
	admin := w.admin()
	if err := admin.Drop(name); err != nil {
		w.t.Error(err)
	}
	if err := admin.Create(name, []table.KeyColumn{{Name: "id", Type: table.String}}, table.Definition{TimeToLive: -1, MaxVersions: 1}); err != nil {
		w.t.Error(err)
	}
}

func TestARunWithARecreatedOrDroppedTableIsNotResumed(t *testing.T) {
	for name, want := range map[string]string{"made again": "table t_b was dropped and created again", "gone": "table t_b was dropped"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.template = "t_{what}"
			cfg := w.config(w.file("in.csv", fortyRows()))
			cfg.Lanes.BatchRows, cfg.Lanes.Concurrency = 1, 1
			cfg.Pacer = func() lanes.Pacer { return restless{} }
			cfg.Resume.Look = true
			drain, stop := context.WithCancelCause(context.Background())
			sent := 0
			cfg.Drain, cfg.onSend = drain, func([]table.Ref) {
				if sent++; sent == 30 { // so there are both tables
					stop(&Interrupted{Signal: "the test", ExitCode: exitcode.Interrupted})
				}
			}
			if r := w.load(cfg); r.State != StateInterrupted {
				t.Fatalf("%+v", r)
			}
			cfg.Drain = nil
			w.remake("t_b")
			if name == "gone" {
				must(t, w.admin().Drop("t_b"))
			}
			if text := w.refused(cfg); !strings.Contains(text, want) || !strings.Contains(text, "--fresh") {
				t.Errorf("error %s", text)
			}
		})
	}
}

// fortyRows is a file whose rows go to t_a and t_b in turns.
func fortyRows() string {
	return rowsOf("id,what\n", 40, func(i int) string { return fmt.Sprintf("key%d,%c\n", i, 'a'+i%2) })
}

// Without a look at the end nobody would see it: the rows after it are written as well as those before.
func TestATableRecreatedDuringTheLoadFailsIt(t *testing.T) {
	for _, template := range []string{"", "t_{what}"} {
		t.Run("table "+template, func(t *testing.T) {
			w := newWorld(t)
			w.template = template
			cfg := w.config(w.file("in.csv", fortyRows()))
			cfg.Lanes.BatchRows, cfg.Lanes.Concurrency = 1, 1
			cfg.Pacer = func() lanes.Pacer { return restless{} }
			cfg.Resume.Look = true
			sent, name := 0, "t"
			if template != "" {
				name = "t_a"
			}
			cfg.onSend = func([]table.Ref) {
				if sent++; sent == 20 {
					w.remake(name)
				}
			}
			r, err := cfg.run(context.Background())
			if err == nil || r.ExitCode != exitcode.Refused || !strings.Contains(err.Error(), "table "+name+" was dropped and created again") {
				t.Fatalf("exit code %d, error %v", r.ExitCode, err)
			}
			if !r.Remade {
				t.Error("the report does not say that the table was made again")
			}
			if text := w.refused(cfg); !strings.Contains(text, "was dropped and created again") {
				t.Errorf("the same command again: %s", text)
			}
		})
	}
}

// A look at the partitions sees it before all rows are sent.
func TestALoadStopsWhenItsTableIsSeenToBeAnother(t *testing.T) {
	ids := keep.NewTableIDs()
	survey := newPartitionPoller(onePartition{}, 0)
	for _, created := range []int64{1, 0, 1} { // 0 is a service that does not say
		survey.note(false, ids.See("t", created))
	}
	select {
	case err := <-survey.fatal:
		t.Fatal(err)
	default:
	}
	for _, created := range []int64{2, 3} {
		survey.note(false, fmt.Errorf("look: %w", ids.See("t", created)))
	}
	select {
	case err := <-survey.fatal:
		if !strings.Contains(err.Error(), "created again") {
			t.Error(err)
		}
	default:
		t.Error("nothing stops the load")
	}
}
