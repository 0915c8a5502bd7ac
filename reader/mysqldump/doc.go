// Package mysqldump reads dumps of mysqldump and mariadb-dump. Index finds the tables, with their columns, primary keys
// and the positions of their rows. A Cutter finds the ends of rows; a Parser returns records with the same values as
// from a live server. Unknown syntax is refused, with its byte offset.
package mysqldump
