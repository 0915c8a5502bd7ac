package client

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// access knows which operations the service has allowed our keys. It is safe for concurrent use.
type access struct {
	credentials common.CredentialsProvider
	patience    time.Duration // 0 makes every refusal final

	mu      sync.Mutex
	allowed map[string]bool      // by path
	refused map[string]time.Time // since when, by path
}

// Refresher is a credentials provider that can be told that its keys were refused.
type Refresher interface{ Refresh() }

// seen notes an answer's error, nil for success, and returns the error to act on. A refusal of keys that were accepted
// before is temporary for a while; it comes before anything is applied.
func (a *access) seen(path string, err error) error {
	var ots *tablestore.OtsError
	refused := errors.As(err, &ots) && ots.Code == authFailed
	if err != nil && (!refused || a.patience == 0) {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !refused {
		if a.allowed == nil {
			a.allowed, a.refused = map[string]bool{}, map[string]time.Time{}
		}
		a.allowed[path] = true
		delete(a.refused, path)
		return nil
	}
	if !a.allowed[path] || lasts(ots.Message) {
		return err
	}
	a.refresh()
	since, before := a.refused[path]
	if !before {
		since = time.Now()
		a.refused[path] = since
	}
	if time.Since(since) >= a.patience {
		return err
	}
	return &keysRefused{ots}
}

// unsigned notes an answer without a signature: a refusal of the keys means that there may be newer ones.
func (a *access) unsigned(err error) {
	if u := new(unsigned); errors.As(err, &u) && u.keys {
		a.refresh()
	}
}

func (a *access) refresh() {
	if r, can := a.credentials.(Refresher); can {
		r.Refresh()
	}
}

// authFailed is the code of a refusal of the keys.
const authFailed = "OTSAuthFailed"

// lasts reports whether the refusal is about the network or an access policy, not the keys.
func lasts(message string) bool {
	return strings.Contains(message, boundVPC) || strings.Contains(message, "ACL polic")
}

// keysRefused is the error of a request whose keys were refused after they had been accepted.
type keysRefused struct{ cause *tablestore.OtsError }

func (k *keysRefused) Error() string { return k.cause.Error() }
func (k *keysRefused) Unwrap() error { return k.cause }
