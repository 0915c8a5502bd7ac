// Package reader reads records from inputs in all formats, compressions and encodings. Open returns a File, the
// source.Source of one input. It gives pieces that can be prepared in parallel, from them, in order, splits that can be
// parsed in parallel, and from each split its records. The records do not depend on the cuts; every record is delivered
// or named in a reason. The package does not know tables, rows or the network. Each room below it knows one thing:
// input where bytes come from, compress and charset their encoding, csv, jsonl and parquet what they mean, convert
// values.
package reader
