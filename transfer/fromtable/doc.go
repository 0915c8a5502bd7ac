// Package fromtable loads from a Tablestore table, and translates options into scans. Begin completes a new table with
// the source's properties, and refuses inexact copies. Command and library copy the same rows of the same table.
package fromtable
