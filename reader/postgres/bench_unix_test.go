//go:build unix

package postgres

import (
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/postgres/pgtest"
	"example.com/tsimport/reader/sqltable/sqltest"
)

func BenchmarkTableBesideDriver(b *testing.B) {
	s := pgtest.Start(b)
	s.Exec(`CREATE TABLE orders (id bigint PRIMARY KEY, customer text, price numeric(12,2), paid boolean, at timestamptz, w double precision, note text);
		INSERT INTO orders SELECT i, 'customer ' || i % 1000, i / 100.0, i % 3 = 0, '2024-01-01'::timestamptz + i * interval '1 s', i / 3.0, CASE WHEN i % 5 > 0 THEN md5(i::text) END FROM generate_series(1, 500000) i`)
	a := conformance.Try(Parse(s.Address("orders"))).Must(b)
	sqltest.Beside(b, a, 500_000, func() (n int) {
		ctx := b.Context()
		conn := conformance.Try(connect(ctx, a)).Must(b)
		defer hangUp(conn)
		rows := conn.ExecParams(ctx, "SELECT * FROM orders", nil, nil, nil, nil)
		for rows.NextRow() {
			n += len(rows.Values()) / 7
		}
		must(b, conformance.ErrorOf(rows.Close()))
		return n
	})
}
