// Package record holds what the readers of all formats deliver: records of data. A Datum keeps what a format knows of a value
// (its kind, its exact number, its text), no more and no less than the file says. Package convert converts it.
package record
