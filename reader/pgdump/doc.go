// Package pgdump reads what pg_dump and pg_dumpall write as plain text. Index goes through a dump once and finds its tables, with their columns, primary keys
// and where the rows of their COPY statements are. A Parser makes records of such rows, with values as those of a live PostgreSQL. The scanner
// is strict: what it does not know as a part of a dump it refuses with the byte.
package pgdump
