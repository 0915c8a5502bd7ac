package server

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"example.com/tsimport/engine/wire"
)

// Check returns an error if the account in the options is invalid. The error does not contain the secret.
func (o Options) Check() error {
	for _, name := range append([]string{o.Instance}, o.More...) {
		if name != "" && !validInstance(name) {
			return fmt.Errorf("instance %q: want 3 to 16 letters, digits and hyphens, a letter first and no hyphen last", name)
		}
	}
	if strings.Trim(o.AccessKeyID, keyIDBytes) != "" {
		return fmt.Errorf("access key id %q: want letters, digits and + . / _ - only, as the SDKs do", o.AccessKeyID)
	}
	for _, c := range []byte(o.AccessKeySecret) {
		if c <= ' ' || c > '~' {
			return errors.New("the access key secret must be printable ASCII without spaces")
		}
	}
	return nil
}

const keyIDBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+./_-"

func validInstance(name string) bool {
	if len(name) < 3 || len(name) > 16 || name[len(name)-1] == '-' {
		return false
	}
	for i, c := range []byte(name) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || c != '-' && (c < '0' || c > '9')) {
			return false
		}
	}
	return true
}

// identify returns the secret of the request's access key, which signs the answer. It is empty if the key is unknown.
func (s *Server) identify(h http.Header) (secret string) {
	if h.Get(wire.HeaderAccessKeyID) == s.o.AccessKeyID {
		secret = s.o.AccessKeySecret
	}
	return secret
}
