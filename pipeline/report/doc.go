// Package report writes the web page of a finished load. Write takes the load's report and writes a file to its run
// folder with the ledger, the settings, and what was written over time and to which partitions. If the page cannot be
// written, the load is not affected. The page appears complete or not at all.
package report
