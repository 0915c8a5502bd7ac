// Package source is the seam between a load and its rows: Source is the contract. Files (package reader), the library's
// rows and test sources (package sourcetest) implement it; nothing above knows which one it has.
package source
