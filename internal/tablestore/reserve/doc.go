// Package reserve raises the reserved write throughput of a table for a time and restores it. Raise.Begin notes what the table
// has, in a Register, before it changes anything; Raise.End restores that. What a process that was killed has noted, the next one that
// begins, or Raise.End alone, restores. A value that neither was set here nor was there before is somebody else's, and stays. One Raise
// works on a table at a time: its user sees to that. The package starts nothing and knows no flags.
//
// This package carries no compatibility promise: only the module's root package does.
package reserve
