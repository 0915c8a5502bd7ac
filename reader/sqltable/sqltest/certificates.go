package sqltest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
)

// Authority signs certificates for tests of TLS.
type Authority struct {
	File string // file with the authority's certificate

	t      testing.TB
	signed *x509.Certificate
	key    *ecdsa.PrivateKey
}

func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t}
	a.File, _ = a.sign(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		Subject: pkix.Name{CommonName: "tests"}}, a)
	return a
}

// Server creates a key with a certificate for 127.0.0.1, and returns their files.
func (a *Authority) Server() (cert, key string) {
	a.t.Helper()
	return a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "server"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, nil)
}

// Client creates a key with a certificate for a user, and returns their files.
func (a *Authority) Client(user string) (cert, key string) {
	a.t.Helper()
	return a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: user},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, nil)
}

// sign signs a certificate. itself is nil, except for the authority's own certificate.
func (a *Authority) sign(c *x509.Certificate, itself *Authority) (cert, key string) {
	a.t.Helper()
	dir := a.t.TempDir()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	conformance.Must(a.t, err)
	c.SerialNumber, _ = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if itself != nil {
		itself.signed, itself.key = c, private
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.signed, &private.PublicKey, a.key)
	conformance.Must(a.t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	conformance.Must(a.t, err)
	write := func(name, kind string, body []byte) string {
		path := filepath.Join(dir, name)
		conformance.Must(a.t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: body}), 0o600))
		return path
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", pkcs8)
}
