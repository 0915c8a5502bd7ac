// Package arch tests the layout of the module: every import between rooms must be listed here, only listed rooms may start
// goroutines, each room has a doc.go, and docs/architecture.md names every room and nothing that does not exist. It does not
// know what the rooms do.
package arch
