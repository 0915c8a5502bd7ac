// Package plan decides what a load will do before its first row. From a Request it makes a Plan: inputs are opened and
// cut to size, the schema is settled, types are inferred from samples, and memory is divided. For inspect it describes
// the inputs instead. Planning writes nothing and refuses every invalid request in one line that names the fault; a
// type is inferred only if no sampled value would change. It knows no lanes or requests.
package plan
