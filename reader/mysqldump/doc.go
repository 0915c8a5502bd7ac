// Package mysqldump reads dumps of mysqldump and mariadb-dump. Index finds their tables, with columns, primary keys and
// the places of rows. A Cutter finds the ends of rows, a Parser makes records with a live server's values. Anything
// unknown is refused with its byte.
package mysqldump
