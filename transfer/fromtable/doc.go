// Package fromtable loads from a Tablestore table, and translates options into scans. Load.Begin completes a new table
// with the source's properties and refuses inexact copies. The command and the library use it to copy the same rows.
package fromtable
