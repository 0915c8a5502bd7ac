//go:build unix

package mysql

import (
	"database/sql/driver"
	"errors"
	"io"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/mysql/mysqltest"
	"example.com/tsimport/reader/sqltable/sqltest"
)

func BenchmarkTableBesideDriver(b *testing.B) {
	s := mysqltest.Start(b)
	s.Exec("CREATE TABLE orders (id bigint PRIMARY KEY, customer varchar(40), price decimal(12,2), paid int, at "+
		"timestamp(3) NULL, w double, note text)",
		`INSERT INTO orders SELECT CAST(seq AS INT), CONCAT('customer ', seq MOD 1000), seq / 100.0, seq MOD 3 = 0, '2024-01-01' + INTERVAL seq SECOND, seq / 3e0, IF(seq MOD 5 > 0, MD5(seq), NULL) FROM seq_1_to_500000`, "ANALYZE TABLE orders")
	a := conformance.Try(Parse(s.Address("orders"))).Must(b)
	sqltest.Beside(b, a, 500_000, func() (n int) {
		s := conformance.Try(a.connect(b.Context())).Must(b)
		defer s.Close()
		r := conformance.Try(s.conn.QueryContext(b.Context(), "SELECT * FROM orders", nil)).Must(b)
		defer r.Close()
		values := make([]driver.Value, len(r.Columns()))
		for {
			err := r.Next(values)
			if errors.Is(err, io.EOF) {
				return n
			}
			must(b, err)
			n++
		}
	})
}
