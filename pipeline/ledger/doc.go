// Package ledger counts how each record of a load ends, once, and keeps what is needed afterwards: rejected records,
// archived rows, returned keys, rows that were sent twice, timestamps. An Account takes the ends of rows; Counted
// becomes the report of a load. Only the dispatcher's goroutine uses them.
package ledger
