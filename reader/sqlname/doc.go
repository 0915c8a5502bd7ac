// Package sqlname reads and writes table names in addresses and flags: TABLE or SCHEMA.TABLE, where a part with a dot
// or a double quote is in double quotes, a quote in it doubled. Split undoes Join for every name.
package sqlname
