// Package options has every option of a load once: its name, kind, values, default, usage and group, who has it, and the field of a
// Request that it sets. A Request comes in, a pipeline.Config goes out; a Command has what commands say beside it, and is kept as
// JSON. It promises that an option means the same wherever it is given, as a flag, a key of a job file or a field of the library, and
// that what cannot be meant is a usage error. It knows nothing of terminals and flag packages.
package options
