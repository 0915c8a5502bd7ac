// Package knownfiles keeps which contents a table has taken, so that a nightly load takes each once. Open reads the Ledger of a table
// from a directory; a Selector chooses from the inputs found those that are new and whole, hashes them while they are read, and notes
// them once they are loaded. What cannot be decided exactly, or was changed after it was loaded, is refused by name. The package
// does not know how files are read or rows written.
package knownfiles
