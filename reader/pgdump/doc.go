// Package pgdump reads plain-text dumps of pg_dump and pg_dumpall. Index goes through a dump once and finds its tables,
// with columns, primary keys and the places of the rows in their COPY statements. A Parser makes records of such rows,
// with the values of a live PostgreSQL. The scanner is strict: anything unknown in a dump is refused with its byte.
package pgdump
