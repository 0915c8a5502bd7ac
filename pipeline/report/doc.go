// Package report writes the web page of a finished load: the ledger, the settings, and what was written over time and
// to which partitions. The page appears complete or not at all; if it cannot be written, the load is unaffected.
package report
