// Package knownfiles records which contents a table has taken, so that a nightly load takes each once. Open reads the
// Ledger of a table from a directory. A Selector picks the new, complete inputs among those found, hashes them while
// they are read, and records them once they are loaded. Cases that cannot be decided exactly, and inputs changed after
// their load, are refused by name. The package does not read formats or write rows.
package knownfiles
