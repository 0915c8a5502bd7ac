// Package ledger counts how each record of a load ends, once, and keeps rejects, archived rows, returned keys, repeated
// rows and timestamps. An Account takes the ends of records, and Counted becomes part of the report. Both belong to the
// dispatcher's goroutine.
package ledger
