package tsimport

import "time"

// LoaderOptions configures a Loader. The zero value puts rows into an existing table. Fields mean the same as the flags
// of tsimport load of the same names; see docs/loading.md.
type LoaderOptions struct {
	Mode      string // put (replace rows), update (write only the columns given) or delete; "" is put
	Condition string // reject a row unless it exists (exist) or does not (not-exist); "" means ignore
	OnNull    string // update: skip leaves a Null column alone, delete deletes it; "" is skip
	Order     string // last-wins keeps the order of rows of one key, none does not; "" is last-wins

	Create       bool     // create the table if it does not exist
	PK           []string // primary key of a new table: NAME:TYPE for each column, of type string, integer or binary
	TTL          int      // time to live of a new table in seconds, at least 86400; 0 means forever
	MaxVersions  int      // versions per cell of a new table; 0 means 1
	MaxDeviation int64    // maximum seconds between a timestamp and the service's clock; 0 means the service's default

	Concurrency       int     // maximum requests in flight; 0 means 32
	BatchBytes        int64   // maximum bytes of a request; 0 means 4 MiB
	MaxWCU            float64 // maximum capacity units per second, over all partitions; 0 means no limit
	MaxRowsPerSecond  float64 // 0 means no limit
	MaxBytesPerSecond int64   // by the size of rows as the service counts it; 0 means no limit
	Compress          string  // compress requests: on or off; "" is off

	RetryFor time.Duration // time without progress before the load fails; 0 means 15 minutes
	Settle   time.Duration // time for which an unanswered request may still be applied; 0 means Target.RequestTimeout

	// Memory limits the bytes of rows between Put and their outcomes; it is at least 16 MiB, and 0 means 64 MiB. Memory
	// referenced by a Done is not counted. Rows of several megabytes may take more: with 16 MiB and rows of 4 MiB, twice.
	Memory int64
	// TempDir is a folder for rows that do not fit in memory. If it is "", Put waits for memory instead.
	TempDir string
}

const defaultMemory = 64 << 20

func (o *LoaderOptions) memory() int64 {
	if o.Memory == 0 {
		return defaultMemory
	}
	return o.Memory
}
