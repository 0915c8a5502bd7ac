// Package datax converts job files of DataX. Convert handles jobs that write to Tablestore and read text files,
// objects, tables or databases, with notes on the differences of our load; Join merges several jobs. Settings that are
// unknown, or that could silently change a cell, are refused by name; the exception is the spelling of database dates,
// times and floats, which a note names. The package opens no files, and copies no access keys or passwords.
package datax
