// Package report writes the web page of a finished load, with the counts, the settings, and charts of what was written
// over time and to which partitions. The page is written completely or not at all; a failure does not affect the load.
package report
