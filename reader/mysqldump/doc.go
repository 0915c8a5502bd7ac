// Package mysqldump reads dumps of mysqldump and mariadb-dump. Index goes through a dump once and finds its tables,
// with their columns, primary keys and the places of the rows in their INSERT statements. A Cutter finds the ends of
// rows in such text, a Parser makes records of them, with the values of a live server. The scanner is strict: anything
// unknown in a dump is refused with its byte.
package mysqldump
