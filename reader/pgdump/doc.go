// Package pgdump reads plain-text dumps of pg_dump and pg_dumpall. Index finds tables with columns, keys and the
// position of rows; a Parser makes records with a live server's values. Anything unknown is refused, with its offset.
package pgdump
