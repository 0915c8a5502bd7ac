// Package arch tests the layout of the module. Every import between rooms must be listed here, only listed rooms may start
// goroutines, each room has a doc.go, structs of the load path have at most 15 fields unless their comment says why,
// docs/architecture.md names every room and no file that does not exist, and no text uses
// a word that docs/glossary.md bans.
package arch
