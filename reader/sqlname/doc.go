// Package sqlname parses and writes names such as TABLE or SCHEMA.TABLE, quoted if necessary. Split undoes Join.
package sqlname
