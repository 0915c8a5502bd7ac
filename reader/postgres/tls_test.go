package postgres

import (
	"strings"
	"testing"

	"tsimport/reader/postgres/pgtest"
	"tsimport/reader/sqltable/sqltest"
)

func TestTLSOfARealServer(t *testing.T) {
	s := pgtest.Start(t)
	s.Exec("CREATE TABLE t (id int PRIMARY KEY); CREATE USER safe; CREATE USER known; GRANT SELECT ON t TO safe, known")
	try := func(user, host, parameters string) error {
		a, err := Parse(strings.NewReplacer("postgres@", user+"@", "127.0.0.1", host, "sslmode=disable&", "").Replace(s.Address("t")) + parameters)
		if err != nil {
			return err
		}
		look, _, err := a.Look(t.Context())
		if err == nil {
			look.Close()
		}
		return err
	}
	for parameters, wants := range map[string]string{"": "", "&sslmode=prefer": "", "&sslmode=disable": "", "&sslmode=require": "the server speaks no TLS, which the address asks for; turn TLS on at the server or, where the network is trusted, give sslmode=disable"} {
		if err := try("postgres", "127.0.0.1", parameters); wants == "" && err != nil || wants != "" && (err == nil || !strings.Contains(err.Error(), wants)) {
			t.Errorf("a server without TLS, %q: %v, want %q", parameters, err, wants)
		}
	}
	ours, others := sqltest.NewAuthority(t), sqltest.NewAuthority(t)
	cert, key := ours.Server()
	s.Secure(ours.File, cert, key, "hostssl all safe all trust\nhost all safe all reject\nhostssl all known all cert\nhost all known all reject\n")
	cert, key = ours.Client("known")
	strange, strangeKey := others.Client("known")
	other, otherKey := ours.Client("safe")
	pair := func(cert, key string) string { return "&sslcert=" + cert + "&sslkey=" + key }
	for _, c := range []struct{ user, host, parameters, wants string }{
		{"safe", "127.0.0.1", "", ""},
		{"safe", "127.0.0.1", "&sslmode=disable", "pg_hba.conf rejects"},
		{"safe", "127.0.0.1", "&sslmode=require", ""},
		{"safe", "127.0.0.1", "&sslmode=verify-ca&sslrootcert=" + ours.File, ""},
		{"safe", "127.0.0.1", "&sslmode=verify-ca&sslrootcert=" + others.File, "unknown authority; give the authority's certificate with sslrootcert=FILE"},
		{"safe", "127.0.0.1", "&sslmode=verify-full&sslrootcert=" + ours.File, ""},
		{"safe", "localhost", "&sslmode=verify-full&sslrootcert=" + ours.File, "match localhost); connect by one of them or, to trust any that the authority has signed, give sslmode=verify-ca"},
		{"safe", "127.0.0.1", "&sslmode=verify-ca&sslrootcert=/nowhere.pem", "/nowhere.pem: no such file or directory); want the parameters of libpq"},
		{"nobody", "127.0.0.1", "&sslmode=disable", "the server refuses the session: role \"nobody\" does not exist (SQLSTATE 28000)"},
		{"safe", "localhost", "&sslmode=verify-ca&sslrootcert=" + ours.File, ""},
		{"safe", "127.0.0.1", "&sslmode=sometimes", "sslmode"},
		{"known", "127.0.0.1", "&sslmode=require", "certificate"},
		{"known", "127.0.0.1", "&sslmode=verify-full&sslrootcert=" + ours.File + pair(cert, key), ""},
		{"known", "127.0.0.1", "&sslmode=require" + pair(strange, strangeKey), "give one that it trusts with sslcert=FILE and sslkey=FILE"},
		{"known", "127.0.0.1", "&sslmode=require" + pair(other, otherKey), "certificate authentication failed"},
	} {
		if err := try(c.user, c.host, c.parameters); c.wants == "" && err != nil || c.wants != "" && (err == nil || !strings.Contains(err.Error(), c.wants)) {
			t.Errorf("%s at %s%s: %v, want %q", c.user, c.host, c.parameters, err, c.wants)
		}
	}
}
