// Package enginetest starts an embedded Tablestore for a Go test. It keeps its rows in memory, serves any SDK on a free
// local port, and stops when the test ends. A test can move its clock, and reset an engine that tests share.
package enginetest
