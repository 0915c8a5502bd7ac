// Package sqlname reads and writes names TABLE or SCHEMA.TABLE, with special parts in double quotes. Split undoes Join.
package sqlname
