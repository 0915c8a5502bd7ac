// Package arch tests the layout of the module and its pages. Every import between packages must be listed here, and
// only listed packages may start goroutines. Each package has a doc.go. Structs of the load path have at most 15 fields
// unless their comment says why. Functions of commands are short, and options are parsed and named in few files.
// docs/internals/architecture.md names every package, only files that exist and a function for each decision. Links
// between pages and test patterns are valid, and each page has a Chinese version.
package arch
