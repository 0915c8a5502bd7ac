// Package postgres reads PostgreSQL tables for reader/sqltable. Parse returns an Address, which is a sqltable.Server.
// Its sessions share an exported snapshot. Values come as the server's texts or in its binary format,
// so none is rounded.
package postgres
