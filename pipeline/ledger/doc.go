// Package ledger counts how each record of a load ends, once, and keeps what is to be known of it afterwards: rejected records, archived
// rows, returned keys, rows that were sent twice, timestamps. An Account takes the ends of rows; Counted is what the report of a load is
// made of. The dispatcher's goroutine alone uses them.
package ledger
