package client

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// UnsignedVariable is the environment variable that makes tsimport accept responses whose signature a proxy removed.
const UnsignedVariable = "TSIMPORT_UNSIGNED_ANSWERS"

// AcceptUnsigned reports whether UnsignedVariable allows responses without a signature.
func AcceptUnsigned() (bool, error) {
	switch v := os.Getenv(UnsignedVariable); v {
	case "":
		return false, nil
	case "accept":
		return true, nil
	default:
		return false, fmt.Errorf("%s=%s: want accept, or nothing", UnsignedVariable, v)
	}
}

// mustBeSigned is the set of operations that change or delete a table, a column or an index, or delete a single row.
// AcceptUnsigned does not apply to them.
var mustBeSigned = map[string]bool{"/DeleteTable": true, "/UpdateTable": true, "/DeleteRow": true, "/DropIndex": true,
	"/DeleteDefinedColumn": true}

// claim is what a response says, which may be false.
type claim uint8

const (
	success    claim = iota // a status of 2xx
	keyRefused              // 403 OTSAuthFailed; if the secret is wrong, the signature cannot be checked
	refused                 // any other refusal
)

type decision uint8

const (
	counts  decision = iota
	nothing          // the outcome of the request is unknown
	pauses           // the outcome is unknown; the keys may have been revoked, so it is retried for Patience
	ends             // the outcome is unknown; the keys are wrong, so the command ends
)

// decisions gives the reaction to every response. An attacker on the network can drop, repeat and forge responses, but
// not sign them. So a response counts only if its path, headers and checksum are signed with the secret of its request.
// The columns are: unsigned, before any signed response; unsigned, later; signed.
var decisions = [...][3]decision{
	success:    {nothing, nothing, counts},
	keyRefused: {ends, pauses, counts},
	refused:    {nothing, nothing, counts},
}

// rule returns nil if a response counts, and otherwise an error. A refusal without a code is left to the caller.
func (t *Traffic) rule(path string, accept, signed bool, res *http.Response, body []byte) error {
	u := &unsigned{page: tablestore.OtsError{HttpStatusCode: res.StatusCode}, proven: t.proven.Load(),
		present: res.Header.Get(headerAuthorization) != "", must: accept && mustBeSigned[path]}
	what := success
	if res.StatusCode < 200 || res.StatusCode >= 300 {
		code, message, ok := decodeError(body)
		if !ok {
			return nil
		}
		what, u.says = refused, &tablestore.OtsError{Code: code, Message: message, RequestId: res.Header.Get(headerRequestID),
			HttpStatusCode: res.StatusCode}
		if res.StatusCode == http.StatusForbidden && code == authFailed {
			what = keyRefused
		}
	} else if mustBeSigned[path] || path == "/CreateTable" {
		// The status is not signed, and the SDK would mistake a refusal for an empty response.
		if code, _, ok := decodeError(body); ok && strings.HasPrefix(code, "OTS") {
			return errStatus
		}
	}
	column := 0
	switch {
	case signed:
		column = 2
		if !u.proven {
			t.proven.Store(true)
		}
	case accept && !u.must && (!u.present || res.StatusCode == http.StatusForbidden):
		column = 2
	case u.proven:
		column = 1
	}
	switch decisions[what][column] {
	case counts:
		if what != keyRefused && t.refusedSince.Load() != 0 {
			t.refusedSince.Store(0)
		}
		return nil
	case pauses:
		now := time.Now().UnixNano()
		t.refusedSince.CompareAndSwap(0, now)
		u.keys, u.ends = true, time.Duration(now-t.refusedSince.Load()) >= Patience
	case ends:
		u.keys, u.ends = true, true
	}
	u.page.Code, u.page.Message = tablestore.OTS_CLIENT_UNKNOWN, u.Error()
	if res.StatusCode >= http.StatusInternalServerError {
		u.page.Code = tablestore.SERVER_UNAVAILABLE
	}
	return u
}

// unsigned is the error for a response without a valid signature. If ends is set, it wraps the refusal of the keys.
type unsigned struct {
	page    tablestore.OtsError
	says    *tablestore.OtsError // the refusal; nil for a success
	proven  bool                 // the endpoint has signed responses before
	present bool                 // the signature is invalid rather than missing
	must    bool                 // AcceptUnsigned does not apply to the operation
	keys    bool                 // the response refuses the keys
	ends    bool
}

func (u *unsigned) Unwrap() error {
	switch {
	case u.ends:
		return u.says
	case u.says == nil:
		return nil
	}
	return &u.page
}

func (u *unsigned) Error() string {
	what := "the response has no signature (Authorization)"
	if u.present {
		what = "the signature of the response does not match (Authorization)"
	}
	if u.says != nil {
		what += ", so it proves nothing; it says " + u.says.Code + ": " + OneLine(u.says.Message)
	} else {
		what += ", so it is unknown whether the request was carried out"
	}
	switch {
	case u.must:
		return what + "; " + UnsignedVariable + " does not apply to deleting or changing tables: reach the service " +
			"without the proxy that removes signatures"
	case u.present:
		return what + "; check the access key's secret, --endpoint and any proxy in between"
	}
	return what + "; check --endpoint; if a proxy removes signatures, " + UnsignedVariable + "=accept allows that"
}

// Unsettled reports whether an error is for an unsigned response. The outcome is unknown, even if the command ends.
func Unsettled(err error) bool {
	return errors.As(err, new(*unsigned))
}

// signedWith remembers the last keys of a provider, because the SDK's client asks for keys itself and they may rotate.
type signedWith struct {
	common.CredentialsProvider
	mu   sync.Mutex
	last [4]common.Credentials // the newest first
}

func (s *signedWith) GetCredentials() common.Credentials {
	keys := s.CredentialsProvider.GetCredentials()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last[0] == nil || s.last[0].GetAccessKeyID() != keys.GetAccessKeyID() {
		copy(s.last[1:], s.last[:])
	}
	s.last[0] = keys
	return keys
}

// keysOf returns the keys that signed a request, or nil if unknown.
func (s *signedWith) keysOf(signed http.Header) common.Credentials {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, keys := range s.last {
		if keys == nil || keys.GetAccessKeyID() != signed.Get(headerAccessKeyID) {
			continue
		}
		if v4, ok := keys.(common.CredentialsV4); !ok || v4.GetSigningDate() == signed.Get(headerSignDate) {
			return keys
		}
	}
	return nil
}
