// Package record holds the records of all formats' readers: a Datum is exactly what the file has for a value.
package record
