// Package plan decides what a load will do before its first row. A Request comes in: inputs, how to read them, the
// table and the wanted columns. A Plan goes out: inputs opened and cut to size, the schema settled, column types
// inferred from samples, memory divided. For tsimport inspect it describes the inputs instead. It promises that making
// a plan writes nothing, that every wrong request is refused by name in one line, and that a type is inferred only if
// no sampled value would change. It knows nothing of lanes, requests and how rows are sent.
package plan
