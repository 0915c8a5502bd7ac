// Package record holds the records that the readers of all formats deliver. A Datum keeps exactly what the file has
// for a value (its kind, its exact number, its text). Package convert converts it.
package record
