// Package reader reads records from inputs in all formats, compressions and encodings. Open returns a File, the
// source.Source of one input. Its pieces can be prepared in parallel and become, in order, splits that can be parsed in
// parallel into records. Records do not depend on the cuts; each is delivered or named in a reason. Each room below
// knows one thing: input where bytes come from, compress and charset their encoding, csv, jsonl and parquet what they
// mean, convert values.
package reader
