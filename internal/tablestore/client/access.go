package client

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// access records which operations the service has allowed with the keys in use. It is safe for concurrent use.
type access struct {
	credentials common.CredentialsProvider
	patience    time.Duration // 0 makes every refusal final

	mu      sync.Mutex
	allowed map[string]bool      // allowed operations by path
	refused map[string]time.Time // time of the first refusal, by path
}

// Refresher is a credentials provider that gets new keys when told that its keys were refused.
type Refresher interface{ Refresh() }

// seen records the error of a response, which is nil for success, and returns the error to act on. A refusal of keys
// that were accepted before is temporary for a while. Refused requests are never applied.
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

// unsigned records the error of a response without a signature. If that refuses the keys, there may be newer ones.
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

// authFailed is the service's code for refused keys.
const authFailed = "OTSAuthFailed"

// lasts reports whether the refusal of keys is due to the network or an access policy, and so is permanent.
func lasts(message string) bool {
	return strings.Contains(message, boundVPC) || strings.Contains(message, "ACL polic")
}

// keysRefused is the error of a request whose keys were refused, although they had been accepted before.
type keysRefused struct{ cause *tablestore.OtsError }

func (k *keysRefused) Error() string { return k.cause.Error() }
func (k *keysRefused) Unwrap() error { return k.cause }
