// Package pgdump reads plain dumps of pg_dump and pg_dumpall. Index finds the tables, with their columns, keys and the
// positions of their rows; a Parser returns records as from a live server. Unknown syntax is refused, with its offset.
package pgdump
