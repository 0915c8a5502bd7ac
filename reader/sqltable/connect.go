package sqltable

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
)

// Said returns an error that wraps err but has another text.
func Said(text string, err error) error { return &said{text, err} }

type said struct {
	text string
	err  error
}

func (e *said) Error() string { return e.text }
func (e *said) Unwrap() error { return e.err }

// TLSWords holds the names of TLS parameters in the addresses of a kind of server, for advice in errors.
type TLSWords struct {
	Off     string // turns TLS off
	CA      string // names a file with an authority's certificate
	AnyName string // accepts certificates for other host names
	Own     string // name the client's certificate and key
}

// NoTLS returns the error for a server that does not support the TLS that an address requires.
func (w *TLSWords) NoTLS(err error) error {
	return Said(fmt.Sprintf("the server does not support TLS, which the address requires; turn TLS on at the server or, "+
		"where the network is trusted, give %s", w.Off), err)
}

// Explain adds advice to TLS errors. It returns other errors unchanged.
func (w *TLSWords) Explain(err error) error {
	name, invalid, alert := new(x509.HostnameError), new(x509.CertificateInvalidError), new(net.OpError)
	say := func(format string, a ...any) error { return Said(fmt.Sprintf(format, a...), err) }
	switch {
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return say("the server's certificate is signed by an unknown authority; give the authority's certificate with "+
			"%s=FILE", w.CA)
	case errors.As(err, name):
		return say("the certificate of the server is for other names (%v); connect by one of them or, to trust any that "+
			"the authority has signed, give %s", name, w.AnyName)
	case errors.As(err, invalid):
		return say("the certificate of the server is not valid (%v); replace it at the server", invalid)
	case errors.As(err, new(tls.RecordHeaderError)):
		return say("the server at the address does not support TLS; check that host and port belong to the database")
	case errors.As(err, &alert) && alert.Op == "remote error": // this is how crypto/tls reports an alert
		return say("the server refused the TLS of this program (%v); if it asks for a certificate, give one that it trusts "+
			"with %s", alert, w.Own)
	}
	return err
}
