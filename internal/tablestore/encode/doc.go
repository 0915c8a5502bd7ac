// Package encode makes rows. An Encoder takes typed values in schema order and appends the row's ordering key and
// PlainBuffer bytes to a block. A row that the service would refuse for its size, key or number of columns is rejected
// here. A record that describes itself also has Cells outside the schema's columns.
package encode
