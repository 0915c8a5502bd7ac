package pipeline

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"tsimport/engine/enginetest"
	"tsimport/internal/table"
)

// fullRows is a service whose tables were made with the option update_full_row, which the embedded one does not have.
type fullRows struct{ http.RoundTripper }

func (f fullRows) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := f.RoundTripper.RoundTrip(r)
	if err != nil || r.URL.Path != "/DescribeTable" || res.StatusCode != http.StatusOK {
		return res, err
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	// What a message is given twice is merged.
	options := protowire.AppendVarint(protowire.AppendTag(nil, 7, protowire.VarintType), 1)
	body = protowire.AppendBytes(protowire.AppendTag(body, 3, protowire.BytesType), options)
	return enginetest.Sign(res, r.URL.Path, body), nil
}

// In a table with the option update_full_row an update removes what it does not name.
func TestUpdatesOfATableOfWholeRowsAreRefusedBeforeTheFirstRow(t *testing.T) {
	w := newWorld(t)
	w.load(w.config(w.file("first.csv", "id,n,m\na,1,2\n")))
	for _, tt := range []struct {
		mode    table.Mode
		refused string
	}{{table.Update, "--mode update"}, {table.Increment, "--mode increment"}, {table.Put, ""}} {
		before := w.plan.Requests()
		cfg := w.counted(w.file("in.csv", "id,n\na,5\n"))
		cfg.Target.Client.Transport, cfg.Write.Mode = fullRows{w.transport()}, tt.mode
		cfg.Target.Key, cfg.Target.Create = nil, false
		delete(cfg.Columns.Types, "m")
		_, err := cfg.run(context.Background())
		sent := w.plan.Requests() - before
		switch {
		case tt.refused == "":
			if err != nil || sent != 1 {
				t.Errorf("--mode put: %d requests to write, %v", sent, err)
			}
		case err == nil || !strings.Contains(err.Error(), tt.refused) || !strings.Contains(err.Error(), "update_full_row") || sent != 0:
			t.Errorf("%s: %d requests to write, %v", tt.refused, sent, err)
		}
		cfg.Target.Client.Transport = w.transport()
		if _, err := cfg.run(context.Background()); err != nil {
			t.Errorf("a table without the option: %v", err)
		}
	}
}
