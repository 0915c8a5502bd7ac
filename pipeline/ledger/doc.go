// Package ledger counts how each record of a load ends, once, and keeps rejects, archived rows, returned keys, repeated
// rows and timestamps. An Account takes the ends of records; Counted becomes part of the report.
package ledger
