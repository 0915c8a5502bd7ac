package main

import (
	"time"

	"github.com/urfave/cli/v2"

	"tsimport/engine/server"
)

// quotaFlags are serve's limits of table operations.
func quotaFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "max-tables", Usage: "maximum number of tables `N`; 0 means no limit, the service's is 64"},
		&cli.IntFlag{Name: "table-ops", Usage: "table operations `N` in any second; 0 means no limit, the service's is 10"},
		&cli.DurationFlag{Name: "throughput-interval", Usage: "minimum `DURATION` between two changes of a table's reserved throughput; 0 means none", Value: server.DefaultThroughputInterval},
	}
}

func setQuotas(c *cli.Context, o *server.Options) error {
	for _, name := range []string{"max-tables", "table-ops"} {
		if n := c.Int(name); n < 0 {
			return usagef("--%s must not be negative, got %d", name, n)
		}
	}
	interval := c.Duration("throughput-interval")
	switch {
	case interval < 0:
		return usagef("--throughput-interval must not be negative, got %s", interval)
	case interval == 0:
		interval = -time.Nanosecond // zero is the default
	}
	o.MaxTables, o.TableOps, o.ThroughputInterval = c.Int("max-tables"), c.Int("table-ops"), interval
	return nil
}
