// Package plan decides, before the first row, what a load will do. Given a Request, it returns a Plan: inputs are
// opened, the schema is settled, types are inferred from samples, and memory is divided. For inspect it describes the
// inputs instead. Planning writes nothing, and refuses every invalid request in one line that names the fault. A type
// is inferred only if no sampled value would change.
package plan
