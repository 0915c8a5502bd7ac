package commands

import (
	"math"
	"time"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/engine/server"
)

// quotaFlags are serve's limits of table operations and of the instance.
func quotaFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "max-tables", Usage: "maximum number of tables `N`; 0 means no limit, the service's is 64"},
		&cli.IntFlag{Name: "table-ops", Usage: "table operations `N` in any second; 0 means no limit, the service's is 10"},
		&cli.Float64Flag{Name: "limit-instance", Usage: "write capacity `UNITS` a second of all tables together; requests above are refused with 429 OTSFlowControl; 0 means no limit"},
		&cli.DurationFlag{Name: "throughput-interval", Usage: "minimum `DURATION` between two changes of a table's reserved throughput; 0 means none", Value: server.DefaultThroughputInterval},
	}
}

func setQuotas(c *call, o *server.Options) error {
	for _, name := range []string{"max-tables", "table-ops"} {
		if n := c.Int(name); n < 0 {
			return usagef("--%s must not be negative, got %d", name, n)
		}
	}
	if n := c.Float64("limit-instance"); !(n >= 0) || math.IsInf(n, 0) {
		return usagef("--limit-instance %v: want a number above 0, or 0 for none", n)
	}
	o.InstanceUnits = c.Float64("limit-instance")
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
