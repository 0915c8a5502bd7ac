// Package options holds every option of a load once: name, kind, values, default, usage, group, commands, and the field
// of a Request that it sets. A Request becomes a pipeline.Config; a Command adds what only commands have, and is kept
// as JSON. An option means the same as a flag, a key of a job file or a field. Meaningless options are usage errors.
package options
