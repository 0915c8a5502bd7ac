// Package record defines the records that readers of all formats return. A Datum is a value exactly as in the file.
package record
