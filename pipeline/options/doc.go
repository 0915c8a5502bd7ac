// Package options makes a load of the options that a user gives: what the flags of tsimport load, and the fields of the library's
// options, mean. Given comes in, a pipeline.Config goes out. It promises that an option means the same wherever it is given, and
// that what cannot be meant is a usage error. It knows nothing of terminals and flag packages.
//
// This package carries no compatibility promise: only the module's root package does.
package options
