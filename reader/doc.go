// Package reader reads records from inputs in all formats, compressions and encodings. Open returns a File, the
// source.Source of one input. Its pieces can be prepared in parallel; in order, they become splits, which can be parsed
// in parallel. The records do not depend on the cuts, and each is either delivered or rejected with a reason. Packages
// below divide the work: input opens the bytes, compress and charset decode them, csv, jsonl, parquet and others parse
// them, and convert makes typed values.
package reader
