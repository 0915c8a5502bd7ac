// Package datax reads the job files of DataX. Convert makes loads of a job that reads text files and writes to Tablestore, with notes on
// what our load does differently. It promises that a setting it does not know, or that could change a cell silently, is refused by name; it
// opens no file but the text that it is given, and copies no access key.
//
// This package carries no compatibility promise: only the module's root package does.
package datax
