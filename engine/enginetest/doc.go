// Package enginetest starts an embedded Tablestore for a Go test, in memory and on a free port of this machine, for any
// SDK. It stops when the test ends. Its clock can be moved. Tests that share an engine reset it in between.
package enginetest
