// Package postgres reads a table of a live PostgreSQL as the source of a load. New makes a source.Origin of an address: Divide cuts the table into
// ranges of its primary key, and each is a live source whose places are keys. All ranges are read from one snapshot, by several sessions that
// share it. A session that is lost joins it again while anything holds it; after that the rest comes from a new one, and Snapshots says which
// ranges came from which. Values come as the server writes them, so that none is rounded.
//
// This package carries no compatibility promise: only the module's root package does.
package postgres
