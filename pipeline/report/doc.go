// Package report makes the page of a load that has ended. The load's report comes in, a file in its run folder goes out:
// the ledger, the settings, what was written over time and to which partitions. It promises that a load is not undone by a
// page that cannot be written, and the page is whole or not there. It does not know how the load went about it.
package report
