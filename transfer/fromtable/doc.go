// Package fromtable is a load of a table of Tablestore, and how options say what of a table is read. A request comes in; Begin
// completes a new table with what the source has, and refuses what would not be a copy. It promises that the command and the
// library copy the same rows of the same table.
package fromtable
