// Package compare compares two measurements. Read takes files of results as JSON, samples or Go's benchmark format; Compare
// returns, for each number that both sides have, the change and whether it is significant. Too few samples are never
// significant, and seconds of one run that rise and fall together count as few. The package does not know how anything was
// measured.
//
// This package carries no compatibility promise: only the module's root package does.
package compare
