// Package knownfiles records the contents that a table has taken, so that a nightly load takes each of them once. Open
// reads a table's Ledger. A Selector picks new, complete inputs, hashes them as they are read, and records them once
// they are loaded. It refuses, by name, inputs that have changed since their load, and cases that it cannot decide.
package knownfiles
