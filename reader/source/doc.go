// Package source is the interface between a load and its rows. Source is the contract. Files (package reader), the
// library's rows and test sources (package sourcetest) implement it; a load does not know which one it has.
package source
