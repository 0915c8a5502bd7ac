// Package knownfiles records which contents a table has taken, so that a nightly load takes each once. Open reads a
// table's Ledger. A Selector picks the new, complete inputs, hashes them while read, and records them once loaded.
// Undecidable cases, and inputs changed after their load, are refused by name.
package knownfiles
