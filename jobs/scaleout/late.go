package scaleout

import (
	"context"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/plan"
)

// A late request of a killed process may be applied after the requests of another attempt. Tasks do not wait for it,
// because it repeats the same row:
//
//   - Every attempt at a shard sends the rows of one reduced run, which is committed before its first row is sent and
//     has each key once. No other shard has the key. So a late request can only write the same cells again: a put
//     replaces the row with itself, a delete repeats itself. Timestamps from records (version columns) are part of the
//     row. A cell without one gets the service's time, which falls within the load in either case.
//   - With --order none each key occurs once in the inputs, and each attempt at a split reads the same records, so the
//     same holds. A late update has an older timestamp than its repeat, so the repeat wins; both delete the same
//     columns.
//   - Operations that depend on the table's contents (conditions, increments, auto-increment keys) are refused (Check).
//
// After the last row, however, such a request could disturb a comparison or the next load. So each result has the time,
// by the service's clock, until which one may arrive. The comparison and finish wait until the latest of these times.

// awaitLate waits until, by the service's clock, no late request can arrive any more.
func (j *Job) awaitLate(ctx context.Context, until time.Time) error {
	if until.IsZero() {
		return nil
	}
	_, clock, err := j.service(ctx)
	if err != nil {
		return err
	}
	end := time.Now().Add(until.Sub(clock.Now()))
	if !clock.Measured() { // this machine's clock cannot be compared with another's
		end = time.Now().Add(j.o.Load.LongestLate())
	}
	if left := time.Until(end); left > 0 {
		j.o.Say.Line("all rows are written; waiting until %s (%v), because requests of a lost worker may still "+
			"arrive until then", end.Format(time.TimeOnly), left.Round(time.Second))
	}
	for time.Until(end) > 0 {
		if err := j.pause(ctx, lookEvery); err != nil {
			return err
		}
		if err := j.rest(ctx); err != nil {
			return err
		}
	}
	return nil
}

// service connects to the service and measures its clock.
func (j *Job) service(ctx context.Context) (*tablestore.TableStoreClient, *client.Clock, error) {
	to, traffic := j.o.Load.Target.Client, new(client.Traffic)
	to.Connections = max(j.o.Load.Lanes.Concurrency, 1)
	sdk, err := client.New(ctx, to, traffic)
	if err != nil {
		return nil, nil, plan.Usagef("%v", err)
	}
	(&client.Admin{Client: sdk, Context: ctx}).AskTime(&traffic.Clock)
	return sdk, &traffic.Clock, nil
}
