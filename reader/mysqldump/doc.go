// Package mysqldump reads what mysqldump and mariadb-dump write. Index goes through a dump once and finds its tables, with their columns, primary keys
// and where the rows of their INSERT statements are. A Cutter finds where rows end in such text, a Parser makes records of them, with values as
// those of a live server. The scanner is strict: what it does not know as a part of a dump it refuses with the byte.
package mysqldump
