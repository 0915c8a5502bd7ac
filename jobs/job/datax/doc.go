// Package datax converts job files of DataX. Convert handles jobs that write text files, Tablestore tables or MySQL
// tables to Tablestore, and notes differences. Join merges several. Settings that are unknown or could silently change
// a cell are refused by name, except the format of dates, times and floats. It opens no files and copies no passwords.
package datax
