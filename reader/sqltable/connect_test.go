package sqltable

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

func TestARefusalOfTLSSaysWhatToDo(t *testing.T) {
	w := TLSWords{Off: "tls=off", CA: "tls-ca", AnyName: "tls=any", Own: "tls-cert=FILE"}
	for _, tt := range []struct {
		err   error
		wants string
	}{
		{x509.UnknownAuthorityError{}, "give the authority's certificate with tls-ca=FILE"},
		{x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"db.example"}}, Host: "10.0.0.1"}, "connect by one of them or, to trust any that the authority has signed, give tls=any"},
		{x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: x509.Expired}, "replace it at the server"},
		{tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, "see whether host and port are those of the database"},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: unknown certificate authority")}, "give one that it trusts with tls-cert=FILE"},
		{&net.OpError{Op: "read", Err: io.ErrUnexpectedEOF}, ""},
	} {
		got := w.Explain(fmt.Errorf("tls error: %w", tt.err))
		if tt.wants == "" && !strings.HasPrefix(got.Error(), "tls error: ") || !strings.Contains(got.Error(), tt.wants) || strings.Contains(got.Error(), "\n") {
			t.Errorf("%v is said as %v, want %q", tt.err, got, tt.wants)
		}
	}
	if said := w.NoTLS(io.EOF); !errors.Is(said, io.EOF) || !strings.Contains(said.Error(), "give tls=off") {
		t.Error(said)
	}
}
