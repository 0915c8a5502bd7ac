// Package pgdump reads plain dumps of pg_dump and pg_dumpall. Index finds tables with columns, primary keys and places
// of rows; a Parser makes records with a live server's values. Anything unknown is refused with its byte.
package pgdump
