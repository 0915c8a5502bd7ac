//go:build e2e

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// certificate writes a certificate for 127.0.0.1 and its key.
func certificate(t *testing.T) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	must(t, err)
	keyDER, err := x509.MarshalECPrivateKey(private)
	must(t, err)
	cert, key = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	must(t, os.WriteFile(cert, text, 0o600))
	must(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), 0o600))
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return cert, key, roots
}

func TestServeSpeaksTLS(t *testing.T) {
	cert, key, roots := certificate(t)
	t.Setenv("TABLESTORE_ACCESS_KEY_SECRET", ownSecret)
	s := startServe(t, "--tls-cert", cert, "--tls-key", key, "--access-key-id", "me")
	if !strings.HasPrefix(s.URL, "https://") {
		t.Fatalf("url=%s", s.URL)
	}
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer web.CloseIdleConnections()
	for secret, want := range map[string]int{ownSecret: http.StatusOK, "wrong": http.StatusUnauthorized} {
		r, err := http.NewRequest(http.MethodGet, s.URL+"/_engine/stats", nil)
		must(t, err)
		r.SetBasicAuth("me", secret)
		res, err := web.Do(r)
		must(t, err)
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%d, want %d", res.StatusCode, want)
		}
	}
}

func TestServeRefusesWhatWouldBeOpenToOthers(t *testing.T) {
	cert, _, _ := certificate(t)
	for name, v := range map[string]struct {
		args []string
		want string
	}{
		"the built-in key for all addresses": {[]string{"--listen", "0.0.0.0:0"}, "the built-in access key is public"},
		"the built-in key without a host":    {[]string{"--listen", ":0"}, "the built-in access key is public"},
		"a certificate without a key":        {[]string{"--listen", "127.0.0.1:0", "--tls-cert", cert}, "--tls-cert and --tls-key go together"},
		"a certificate that is none":         {[]string{"--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", cert}, "--tls-key"},
	} {
		t.Run(name, func(t *testing.T) {
			store := filepath.Join(t.TempDir(), "store")
			stdout, stderr, code := runBinary(t, append([]string{"serve", "--store", store}, v.args...)...)
			if _, err := os.Stat(store); code != 2 || stdout != "" || !strings.Contains(stderr, v.want) || strings.Count(stderr, "\n") != 1 || err == nil {
				t.Errorf("exit code %d, stdout %q, stderr %q, store %v", code, stdout, stderr, err)
			}
		})
	}
}
