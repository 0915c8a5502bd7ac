// Package record defines the records of all formats' readers. A Datum is exactly what a file has for a value.
package record
