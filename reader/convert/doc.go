// Package convert converts records to typed values. A Converter returns one value for each column of the schema, or the
// reason why the record is rejected. Inference finds the type of each column from a sample. A value is never changed to
// make it fit: no fraction is dropped, no overflow wrapped, no undecodable byte replaced. It does not know formats.
package convert
