// Package convert converts records to typed values. A Converter returns a value for each column of the schema, or why
// it rejects the record. Inference infers column types from a sample. A value is never changed to make it fit.
package convert
