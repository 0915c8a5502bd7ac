// Package postgres is what differs between PostgreSQL and other servers of SQL: Parse makes an address, which is a sqltable.Server. Its
// sessions share an exported snapshot. Values come as the server writes them, so that none is rounded.
package postgres
