// Package plan decides what a load will do before its first row. A Request comes in; a Plan goes out: inputs opened and
// cut to size, the schema settled, types inferred from samples, memory divided. For inspect it describes the inputs
// instead. Planning writes nothing and refuses every wrong request by name in one line; a type is inferred only if no
// sampled value would change. It knows no lanes or requests.
package plan
