package tsimport

import "example.com/tsimport/pipeline/options"

// Request describes a load. Each field means the same as the flag of tsimport load of the same name (VersionColumn is
// --version-column), and a zero field means that the flag is not given; see docs/inputs.md, docs/loading.md and
// docs/keys.md. The types after it are its parts.
type (
	Request   = options.Request
	Target    = options.Target
	Text      = options.Text
	Values    = options.Values
	Mapping   = options.Mapping
	NewTable  = options.NewTable
	Writing   = options.Writing
	Numbered  = options.Numbered
	Rates     = options.Rates
	Recurring = options.Recurring
	Database  = options.Database
	Running   = options.Running
	Scan      = options.Scan // part of a CopyRequest
)
