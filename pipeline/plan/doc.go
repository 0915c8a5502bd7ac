// Package plan decides what a load will do before its first row. A Request comes in: inputs, how to read them, the table
// and the columns that are wanted; a Plan goes out, with the inputs opened and cut to size, the schema settled, the types
// of columns inferred from samples and the memory divided; or, for tsimport inspect, what the inputs turned out to be. It
// promises that making a plan writes nothing, that everything asked for wrongly is refused by name in one line, and that
// a type is inferred only if no sampled value would change. It knows nothing of lanes, requests and how rows get there.
package plan
