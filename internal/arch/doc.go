// Package arch tests the layout of the module. Every import between rooms must be listed here, only listed rooms may
// start goroutines, each room has a doc.go, structs of the load path have at most 15 fields unless their comment says
// why, docs/internals/architecture.md names every room, only existing files and a function for each decision, links of
// pages and patterns of tests are valid, and no text uses a word that CONTRIBUTING.md bans.
package arch
