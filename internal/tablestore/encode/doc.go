// Package encode makes rows: typed values come in, in the order of the schema, and the row's ordering key and
// PlainBuffer bytes go out, appended to a block. It promises that a row is encoded once and that no row leaves it that
// the service would refuse for its size, its key or its number of columns. It knows nothing of files and requests.
package encode
