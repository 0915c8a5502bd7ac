// Package record holds what the readers of all formats deliver: records of data. What a format knows of a value comes
// in (its kind, its exact number, its text) and is kept as it is; nothing is converted here. It promises that a datum
// says no more and no less than the file does. It knows nothing of formats or of tables' types.
package record
