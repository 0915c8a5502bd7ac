// Package enginetest starts an embedded Tablestore for a Go test: in memory, on a free port of this machine, for any
// SDK. It ends with the test. Its clock can be moved; tests that share one reset it in between.
package enginetest
