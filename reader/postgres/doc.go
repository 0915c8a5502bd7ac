// Package postgres reads PostgreSQL tables for reader/sqltable. Parse returns an Address, which is a sqltable.Server.
// Its sessions share an exported snapshot. Values are the server's texts, so none is rounded.
package postgres
