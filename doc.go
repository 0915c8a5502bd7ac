// Package tsimport writes rows into tables of Alibaba Cloud Tablestore, as the command tsimport does: it sends requests
// concurrently, at the rate that each partition accepts, and keeps rows of the same key in order.
//
// Open returns a Loader, which writes the rows that a program produces:
//
//	loader, err := tsimport.Open(ctx, target, "readings", tsimport.LoaderOptions{})
//	...
//	err = loader.Put(ctx, tsimport.Row{Columns: []tsimport.Column{
//		tsimport.String("meter", "m-17"), // the primary key
//		tsimport.Int64("at", 1700000000),
//		tsimport.Float64("kwh", 1.5), // attributes
//	}})
//	...
//	counts, err := loader.Close(ctx)
//
// Load loads CSV, JSON-lines, Parquet and Arrow files, like tsimport load. Copy copies a table, like tsimport copy.
//
// # Guarantees
//
// Each row that Put accepts has one outcome: Written, Superseded, Rejected or Unfinished. Their counts add up to the
// number of accepted rows. A written row is in the table before its outcome is delivered. One Loader writes the rows of
// a key in the order in which Put accepted them: the last one wins. Loaders of the same table do not coordinate with
// each other or with commands that load into it: which of their rows wins is undefined, and each counts only its own.
//
// A request without an answer may have been applied. It is sent again, which is harmless for unconditional puts,
// updates and deletes. No later row of its key is sent until the first attempt can no longer be applied.
//
// # Limits and units
//
// A Loader takes at most LoaderOptions.Memory bytes for rows, and somewhat more for rows of several megabytes; Put
// blocks while that memory is full. On disk it writes a summary, in a temporary folder that Close removes, and, if
// LoaderOptions.TempDir is set, rows that do not fit in memory. A row has at most 1,024 attribute cells and
// 4 MiB; a value has at most 1 KiB in a key column and 2 MiB in an attribute. Timestamps are in milliseconds.
//
// # Compatibility
//
// This package keeps its API compatible from release to release; the module's other packages do not.
package tsimport
