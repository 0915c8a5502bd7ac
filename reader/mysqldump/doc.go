// Package mysqldump reads dumps of mysqldump and mariadb-dump. Index finds the tables, with columns, primary keys and
// the position of their rows. A Cutter finds the ends of rows; a Parser makes records with the same values as a live
// server. Anything unknown is refused, with its byte offset.
package mysqldump
