// Package options holds every option of a load once: its name, kind, values, default, usage and group, the commands
// that have it, and the field of a Request that it sets. A Request comes in, a pipeline.Config goes out; a Command adds
// what only commands have, and is kept as JSON. An option means the same as a flag, a key of a job file or a field of
// the library, and meaningless options are usage errors. The package knows nothing of terminals.
package options
