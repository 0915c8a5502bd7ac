package commands

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/lanes"
	"example.com/tsimport/pipeline/plan"
)

func TestProgressSaysThatRowsAreLookedUpAndCheckedForCopies(t *testing.T) {
	// The first answer is lost, then the second request: its row is not found, and sent again.
	s, err := server.Open("", server.Options{InMemory: true, Faults: &faults.Plan{Decide: func(r faults.Request) faults.Fault {
		return faults.Fault{Action: map[int]faults.Action{0: faults.DropAfter, 1: faults.DropBefore}[r.N]}
	}}})
	must(t, err)
	defer s.Close()
	dir := t.TempDir()
	in := filepath.Join(dir, "in.csv")
	put(t, in, "user,what\na,1\nb,2\nc,3\n")
	shown := &screen{start: time.Now()}
	cfg := pipeline.Config{
		Inputs: []string{in}, RunDir: filepath.Join(dir, "run"), Watch: pipeline.Watch{Progress: &shown.progress},
		Target: plan.Target{
			Name: "test", Table: "t", Create: true,
			Client: client.Target{
				Endpoint: "http://embedded", Instance: server.DefaultInstance, Transport: s.Transport(),
				Credentials: &common.DefaultCredentialsProvider{AccessKeyID: server.DefaultAccessKeyID, AccessKeySecret: server.DefaultAccessKeySecret},
			},
			Key:    []table.KeyColumn{{Name: "user", Type: table.String}, {Name: "seq", Type: table.Integer, Auto: true}},
			Define: table.Definition{TimeToLive: -1, MaxVersions: 1},
		},
		Write: pipeline.Write{Settle: 10 * time.Millisecond}, Lanes: lanes.Config{RetryFor: time.Minute, Concurrency: 1},
	}
	cfg.Lanes.BatchRows = 1
	if _, err := pipeline.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if text := shown.counts(); !strings.Contains(text, ", 2 rows looked up (1 found, ") || !strings.Contains(text, " requests), 1 checked for copies") {
		t.Errorf("shown: %s", text)
	}
}
