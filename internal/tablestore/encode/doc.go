// Package encode makes rows. An Encoder takes typed values in schema order and appends the row's ordering key and its
// PlainBuffer bytes to a block. A row is encoded once, and a row that the service would refuse for its size, its key or
// its number of columns is rejected here. A record that describes itself also has Cells outside the schema's columns.
// The package does not know files or requests.
package encode
