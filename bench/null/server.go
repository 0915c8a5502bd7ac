package null

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"sync/atomic"
	"time"
)

// Options of a Server.
type Options struct {
	// Latency is how long a write waits before it is answered.
	Latency time.Duration
	// Partitions is how many a table has, cut evenly between First and Last; 0 is one.
	Partitions  int
	First, Last int64
	// TLS, when set, is spoken on every connection.
	TLS *tls.Config
	// AccessKeyID and AccessKeySecret sign the answers, as official SDKs want them; without them answers are not signed.
	// Signatures of requests are not looked at.
	AccessKeyID, AccessKeySecret string
	// Rows, when set, are what GetRange answers of every table.
	Rows *Stored
}

// The paths that are answered without the operations of tables.
const (
	batchWriteRow = "/BatchWriteRow"
	bulkImport    = "/BulkImport"
	getRange      = "/GetRange"
)

// Key is the key of every table: a column of integers.
const Key = "id"

// Server answers on connections. Its counts may be read while it serves.
type Server struct {
	o Options

	began   string // makes names of requests differ from those of other servers
	answers atomic.Int64

	Requests    atomic.Int64 // writes
	Rows        atomic.Int64
	Connections atomic.Int64 // accepted so far
}

// New makes a server.
func New(o Options) *Server {
	return &Server{o: o, began: fmt.Sprintf("%016x", time.Now().UnixNano())}
}

// Serve answers on connections of the listener until it is closed, which is not an error.
func (s *Server) Serve(l net.Listener) error {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accept a connection on %s: %w", l.Addr(), err)
		}
		s.Connections.Add(1)
		if s.o.TLS != nil {
			c = tls.Server(c, s.o.TLS)
		}
		go s.serve(c)
	}
}

// serve answers the requests of one connection, one after the other. What cannot be read ends the connection: a client
// that speaks no HTTP is told by that.
func (s *Server) serve(c net.Conn) {
	defer c.Close()
	r := reader{conn: c, buf: make([]byte, 64<<10)}
	var answer []byte
	var written batches
	for {
		req, err := r.next()
		if err != nil {
			return
		}
		path := string(req.path)
		if path == batchWriteRow || path == bulkImport {
			r := written.answer(path, req.body)
			s.Requests.Add(1)
			s.Rows.Add(int64(written.rows))
			if s.o.Latency > 0 {
				time.Sleep(s.o.Latency)
			}
			answer = s.appendFull(answer[:0], path, r)
		} else if path == getRange && s.o.Rows != nil {
			r := ok(s.o.Rows.answer(req.body))
			answer = s.appendFull(answer[:0], path, &r)
		} else {
			r := s.operate(path, req.body)
			answer = s.appendFull(answer[:0], path, &r)
		}
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

// NewCertificate makes a server certificate for this machine, which is its own authority. It returns what Options.TLS takes and
// the certificate in PEM, which clients must trust. The key is never stored.
func NewCertificate() (config *tls.Config, certificatePEM []byte, err error) {
	certificate := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tsimport null server"}, DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	signed, err := x509.CreateCertificate(rand.Reader, certificate, certificate, &key.PublicKey, key)
	if err != nil {
		return nil, nil, fmt.Errorf("make a certificate: %w", err)
	}
	config = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{signed}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	return config, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), nil
}
