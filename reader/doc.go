// Package reader turns input files into records, in all formats, compressions and encodings: File is the source.Source of
// one. An input comes in; pieces
// that can be prepared in parallel go out, from them, in order, splits that can be parsed in parallel, and from each
// split its records. It promises that the records of a source do not depend on where it was cut and that every record is
// delivered or named in a reason. It knows nothing of tables, rows and the network; the rooms below it know one thing
// each: input where bytes come from, compress and charset what has been done to them, csv, jsonl and parquet what they
// mean, convert what value each cell gets.
package reader
