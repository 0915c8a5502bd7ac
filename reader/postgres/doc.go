// Package postgres is what differs between PostgreSQL and other SQL servers: Parse returns an address, a
// sqltable.Server. Its sessions share an exported snapshot. Values are the server's texts, so none is rounded.
package postgres
