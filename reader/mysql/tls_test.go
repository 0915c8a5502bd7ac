package mysql

import (
	"strings"
	"testing"

	"tsimport/reader/mysql/mysqltest"
	"tsimport/reader/sqltable/sqltest"
)

func TestTLSOfARealServer(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	s := mysqltest.Start(t)
	s.Exec("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)",
		"CREATE USER safe@'127.0.0.1' REQUIRE SSL", "CREATE USER known@'127.0.0.1' REQUIRE X509", "GRANT SELECT ON shop.* TO safe@'127.0.0.1'", "GRANT SELECT ON shop.* TO known@'127.0.0.1'")
	try := func(user, host, parameters string) error {
		a, err := Parse(strings.NewReplacer("root@", user+"@", "127.0.0.1", host).Replace(s.Address("t")) + parameters)
		if err != nil {
			return err
		}
		look, _, err := a.Look(t.Context())
		if err == nil {
			look.Close()
		}
		return err
	}
	s.Options("--skip-ssl")
	for parameters, wants := range map[string]string{"": "", "&ssl-mode=PREFERRED": "", "&ssl-mode=DISABLED": "", "&ssl-mode=REQUIRED": "the server speaks no TLS, which the address asks for; turn TLS on at the server or, where the network is trusted, give ssl-mode=DISABLED", "&ssl-mode=VERIFY_CA": "speaks no TLS"} {
		if err := try("root", "127.0.0.1", parameters); wants == "" && err != nil || wants != "" && (err == nil || !strings.Contains(err.Error(), wants)) {
			t.Errorf("a server without TLS, %q: %v, want %q", parameters, err, wants)
		}
	}
	ours, others := sqltest.NewAuthority(t), sqltest.NewAuthority(t)
	cert, key := ours.Server()
	s.Options("--ssl-ca="+s.Own(ours.File), "--ssl-cert="+s.Own(cert), "--ssl-key="+s.Own(key))
	cert, key = ours.Client("known")
	strange, strangeKey := others.Client("known")
	pair := func(cert, key string) string { return "&ssl-cert=" + cert + "&ssl-key=" + key }
	for _, c := range []struct{ user, host, parameters, wants string }{
		{"safe", "127.0.0.1", "", ""},
		{"safe", "127.0.0.1", "&ssl-mode=DISABLED", "Access denied"},
		{"safe", "127.0.0.1", "&ssl-mode=REQUIRED", ""},
		{"safe", "127.0.0.1", "&ssl-mode=VERIFY_CA&ssl-ca=" + ours.File, ""},
		{"safe", "127.0.0.1", "&ssl-ca=" + ours.File, ""},
		{"safe", "127.0.0.1", "&ssl-ca=" + others.File, "unknown authority; give the authority's certificate with ssl-ca=FILE"},
		{"safe", "127.0.0.1", "&ssl-mode=VERIFY_CA", "unknown authority"}, // the machine's
		{"safe", "127.0.0.1", "&ssl-mode=VERIFY_IDENTITY&ssl-ca=" + ours.File, ""},
		{"safe", "localhost", "&ssl-mode=VERIFY_IDENTITY&ssl-ca=" + ours.File, "match localhost); connect by one of them or, to trust any that the authority has signed, give ssl-mode=VERIFY_CA"},
		{"safe", "localhost", "&ssl-mode=VERIFY_CA&ssl-ca=" + ours.File, ""},
		{"safe", "127.0.0.1", "&ssl-mode=SOMETIMES", "want DISABLED"},
		{"safe", "127.0.0.1", "&ssl-ca=" + key, "no certificate"},
		{"known", "127.0.0.1", "&ssl-mode=REQUIRED", "Access denied"},
		{"known", "127.0.0.1", "&ssl-mode=VERIFY_CA&ssl-ca=" + ours.File + pair(cert, key), ""},
		{"known", "127.0.0.1", "&ssl-mode=REQUIRED" + pair(strange, strangeKey), "see whether it trusts the certificate that ssl-cert and ssl-key give"},
		{"known", "127.0.0.1", pair(cert, strangeKey), "ssl-cert, ssl-key"},
	} {
		if err := try(c.user, c.host, c.parameters); c.wants == "" && err != nil || c.wants != "" && (err == nil || !strings.Contains(err.Error(), c.wants)) {
			t.Errorf("%s at %s%s: %v, want %q", c.user, c.host, c.parameters, err, c.wants)
		}
	}
}
