package options

import (
	"tsimport/pipeline"
	"tsimport/pipeline/plan"
)

// Defaults are the options that do not default to a zero value.
var Defaults = map[string]any{
	"format": "auto", "quote": `"`, "escape": "none", "ragged": "reject", "empty": "null", "quoted-empty": "string",
	"max-tables": plan.DefaultMaxTables, "ttl": -1, "max-versions": 1,
	"mode": "put", "condition": "ignore", "types": "table", "on-null": "skip", "missing": "refuse",
	"max-errors": "100", "retry-for": pipeline.DefaultRetryFor,
	"order": plan.LastWins.String(), "concurrency": pipeline.DefaultConcurrency,
	"batch-bytes": "4MiB", "compress": "off", "max-bytes-per-second": "0",
}
