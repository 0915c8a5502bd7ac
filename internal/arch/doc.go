// Package arch tests the layout of the module. Every import between packages must be listed here, and only listed
// packages may start goroutines. Each package has a doc.go. Structs of the load path have at most 15 fields unless
// their comment says why. docs/internals/architecture.md names every package, only files that exist and a function for
// each decision. Links between pages and test patterns are valid.
package arch
