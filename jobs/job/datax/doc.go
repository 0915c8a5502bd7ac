// Package datax reads the job files of DataX. Convert makes loads of a job that writes to Tablestore and reads text files, objects, tables or databases, with
// notes on what our load does differently; Join makes one job of several. It promises that a setting it does not know, or that could change a cell
// silently, is refused by name, but for the spelling of dates, times and floats of databases, which a note names; it opens no file but the text that it is given, and copies no
// access key and no password.
package datax
