// Package sqlname parses and writes names TABLE or SCHEMA.TABLE, quoting parts where necessary. Split undoes Join.
package sqlname
