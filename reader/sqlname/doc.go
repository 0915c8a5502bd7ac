// Package sqlname reads and writes the names of tables as addresses and flags have them: TABLE or SCHEMA.TABLE, where a part that
// holds a dot or a double quote stands in double quotes, a quote in it doubled. Split undoes Join for every name.
package sqlname
