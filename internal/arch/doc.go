// Package arch tests the layout of the module. Every import between rooms must be listed here, only listed rooms may
// start goroutines, each room has a doc.go, structs of the load path have at most 15 fields unless their comment says
// why, and docs/internals/architecture.md names every room, only existing files and a function for each decision, and
// links between pages and test patterns are valid.
package arch
