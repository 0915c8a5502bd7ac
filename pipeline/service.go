package pipeline

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/pipeline/lanes"
	"example.com/tsimport/pipeline/plan"
)

// service is the target Tablestore. Its sdk and connection, for bulk requests, are nil if the load does not need them.
type service struct {
	sdk        *tablestore.TableStoreClient
	planning   *tablestore.TableStoreClient // used before rows are in flight
	watcher    *client.Admin                // reads partitions while rows are in flight
	connection *client.Connection
	traffic    *client.Traffic
}

// keyPatience is how long a load continues while its access key is refused, if it was accepted before.
const keyPatience = 2 * time.Minute

// connect connects to the service, unless the table is absent. Requests end with ctx, those for planning with graceful.
func connect(ctx, graceful context.Context, cfg *Config) (s service, err error) {
	s.traffic = new(client.Traffic)
	if cfg.Target.Absent {
		return s, nil
	}
	target := cfg.Target.Client
	target.Compress = cfg.Write.Compress
	target.Connections, target.KeyPatience = client.Affordable(
		max(cfg.Lanes.Concurrency+lanes.MostSilent(cfg.Lanes.Concurrency), leastLookUps)), keyPatience
	target.AcceptUnsigned = target.AcceptUnsigned && cfg.Write.Mode != table.Delete
	if s.connection, err = client.Connect(ctx, target, s.traffic); err == nil {
		target.Transport = s.connection.Transport()
		s.sdk, err = client.New(ctx, target, s.traffic)
	}
	if err == nil {
		s.planning, err = client.New(graceful, target, s.traffic)
	}
	if err != nil {
		return s, &plan.UsageError{Message: err.Error()}
	}
	return s, nil
}

func (s *service) clock() *client.Clock { return &s.traffic.Clock }

// admin returns a client for the load's table operations, which wait for an endpoint that is down.
func (c *Config) admin(ctx context.Context, sdk *tablestore.TableStoreClient) *client.Admin {
	patience := min(c.Lanes.RetryFor, client.Patience)
	return &client.Admin{Client: sdk, Context: ctx, RetryFor: patience, ReachFor: patience, OnWait: c.Watch.OnWait}
}

// Before describes the table before the load.
type Before struct {
	Rows  bool // the table has rows; false if that was not checked
	Twice bool // loading rows twice doubles them, because the service numbers them or they are added up
}

// TableBefore looks at the table. It looks for rows if a load would double them, or if rows is set.
func (c *Config) TableBefore(ctx context.Context, rows bool) (b Before, err error) {
	cfg := *c
	cfg.setDefaults()
	s, err := connect(ctx, ctx, &cfg)
	if err != nil || s.sdk == nil {
		return b, err
	}
	t, err := cfg.admin(ctx, s.planning).Describe(cfg.Target.Table)
	if err != nil {
		if client.IsNoTable(err) {
			err = nil
		}
		return b, err
	}
	b.Twice = cfg.Write.Mode == table.Increment || slices.ContainsFunc(t.Key,
		func(k table.KeyColumn) bool { return k.Auto })
	pager := scan.NewPager(s.planning, cfg.Target.Table, t.Key, scan.Options{RetryFor: cfg.admin(ctx, nil).RetryFor})
	pager.Limit(1)
	for (rows || b.Twice) && !b.Rows {
		page, err := pager.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return b, err
		}
		b.Rows = len(page) > 0
	}
	return b, nil
}

// serviceTime returns a function that returns the range in which the service's time is now.
func serviceTime(clock *client.Clock) func() (earliest, latest time.Time) {
	return func() (earliest, latest time.Time) {
		earliest, latest, _ = clock.Range(time.Now())
		return earliest, latest
	}
}

// tellClock warns of a wrong local clock. It first requests the service's time if the load needs it before its rows.
func tellClock(planned *plan.Plan, admin *client.Admin, clock *client.Clock) {
	if planned.Restamp || planned.Mark != "" || planned.Request.Read.Convert.VersionColumn != "" {
		admin.AskTime(clock)
	}
	if warning := clock.SkewWarning(); warning != "" {
		planned.Warnings = append(planned.Warnings, warning)
	}
}
