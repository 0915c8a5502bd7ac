// Package convert makes typed values of records. A record's data come in as the file has them, one value for each
// column of the schema goes out, or the reason why the record is refused. It promises that a value is never changed to
// make it fit: no fraction dropped, no overflow wrapped, no undecodable byte replaced. It knows nothing of formats.
package convert
