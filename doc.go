// Package tsimport writes rows into tables of Alibaba Cloud Tablestore, as the command tsimport does: many requests at a time,
// each partition at the rate that it takes, rows of one key in their order.
//
// Open makes a Loader, which writes the rows that a program makes:
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
// Load loads CSV, JSON-lines, Parquet and Arrow files, as the command tsimport load does. Copy copies a table into another one, as
// tsimport copy does.
//
// # Guarantees
//
// Each row that Put accepts has one outcome: Written, Superseded, Rejected or Unfinished. Their numbers add up to the number of
// accepted rows. A row that was written is in the table before its outcome is delivered. Rows of one key that one Loader writes
// have the order in which Put accepted them: the last one stays. Loaders of the same table know nothing of each other, nor of a
// command that loads into it: which of their rows stays is chance, and the counts of each are its own.
//
// A request without an answer may have been applied. It is sent again, which is harmless for puts, updates and deletes without a
// condition, and no later row of its key is sent until the first attempt can no longer be applied.
//
// # Limits and units
//
// A Loader takes at most LoaderOptions.Memory bytes for rows, and somewhat more for rows of megabytes; Put blocks while they are full.
// It writes nothing to the disk but a summary in a temporary folder, which Close removes, unless LoaderOptions.TempDir names a folder
// for rows that do not fit in memory. A row has at most 1,024 attribute cells and 4 MiB, a value of a key column at most 1 KiB and of
// an attribute 2 MiB.
// Timestamps count in milliseconds.
//
// # Compatibility
//
// Only this package keeps its API compatible from release to release. The module's other packages are importable and carry no
// such promise.
package tsimport
