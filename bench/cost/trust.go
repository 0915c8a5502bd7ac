package cost

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
)

// trusting makes a transport that trusts the one authority of the file.
func trusting(file string) (*http.Transport, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read certificate of null server: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read certificate of null server: %s holds none", file)
	}
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}, nil
}
