// Package encode makes rows. An Encoder takes typed values in schema order and appends the row's ordering key and
// PlainBuffer bytes to a block. It rejects rows that the service would refuse because of their size, key or number of
// columns. A self-describing record also has Cells outside the schema's columns.
package encode
