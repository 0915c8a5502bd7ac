package accesskey

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/aliyun/credentials-go/credentials"
	"github.com/aliyun/credentials-go/credentials/providers"

	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/ratelimit"
)

// Find looks for keys where the SDKs do: in two families of environment variables, then in the provider chain of the
// official credentials library (profile, RAM role, OIDC, ECS). note, if not nil, is called before the chain is asked,
// which may be slow, and with its error if it fails. A key server that fails for client.Patience gives a *DownError.
func Find(ctx context.Context, note func(text string)) (common.CredentialsProvider, error) {
	if p, err := InEnvironment(); p != nil || err != nil {
		return p, err
	}
	tell(note, "no access key in the environment: asking the credentials provider chain (profile, OIDC, then the "+
		"address of the machine's metadata, unless ALIBABA_CLOUD_ECS_METADATA_DISABLED=true)")
	chain, err := newChain()
	if name, ask := server(); err != nil && ask != nil {
		if err = await(ctx, name, ask, note); err != nil {
			return nil, err
		}
		chain, err = newChain()
	}
	if err != nil {
		tell(note, "the credentials provider chain says: "+client.OneLine(err.Error()))
		return nil, errors.New("no access key found; set TABLESTORE_ACCESS_KEY_ID and TABLESTORE_ACCESS_KEY_SECRET, or " +
			"configure a provider of the Alibaba Cloud chain")
	}
	return newChainProvider(chain, func() (credentials.Credential, error) { return credentials.NewCredential(nil) }), nil
}

// newChain makes a chain and asks it for keys. If that fails, make another: a failed chain asks only its last provider.
func newChain() (credentials.Credential, error) {
	chain, err := credentials.NewCredential(nil)
	if err == nil {
		_, err = chain.GetCredential()
	}
	return chain, err
}

// DownError means that a key server gave no keys.
type DownError struct{ name, why string }

func (d *DownError) Error() string {
	return fmt.Sprintf("the server that %s names gave no access key for %v: %s; try again when it works, or set "+
		"TABLESTORE_ACCESS_KEY_ID and TABLESTORE_ACCESS_KEY_SECRET", d.name, client.Patience, d.why)
}

// server returns the environment variable that names a key server and a function that asks it, or nil if there is none.
func server() (name string, ask func() error) {
	set := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(n string) bool { return os.Getenv("ALIBABA_CLOUD_"+n) == "" })
	}
	get := func(p providers.CredentialsProvider, err error) error {
		if err == nil {
			_, err = p.GetCredentials()
		}
		return err
	}
	switch {
	case set("OIDC_TOKEN_FILE", "OIDC_PROVIDER_ARN", "ROLE_ARN"):
		return "ALIBABA_CLOUD_OIDC_PROVIDER_ARN",
			func() error { return get(providers.NewOIDCCredentialsProviderBuilder().Build()) }
	case set("ECS_METADATA"):
		return "ALIBABA_CLOUD_ECS_METADATA",
			func() error { return get(providers.NewECSRAMRoleCredentialsProviderBuilder().Build()) }
	case set("CREDENTIALS_URI"):
		return "ALIBABA_CLOUD_CREDENTIALS_URI",
			func() error { return get(providers.NewURLCredentialsProviderBuilder().Build()) }
	}
	return "", nil
}

// await asks the server until it gives keys, for at most client.Patience.
func await(ctx context.Context, name string, ask func() error, note func(string)) error {
	patience, backoff := ratelimit.Patience{For: client.Patience}, ratelimit.Backoff{Base: 100 * time.Millisecond,
		Max: 5 * time.Second}
	for attempt := 1; ; attempt++ {
		err := ask()
		if err == nil {
			return nil
		}
		down := &DownError{name, withoutSecrets(err)}
		if patience.Over(time.Now()) {
			return down
		}
		if attempt == 1 {
			tell(note, fmt.Sprintf("waiting: the server that %s names gives no access key: %s; retrying for up to %v", name,
				down.why, client.Patience))
		}
		if err := ratelimit.Wait(ctx, backoff.After(attempt)); err != nil {
			return err
		}
	}
}

// withoutSecrets returns an error's text on one line, without quoted responses and the query of the server's address.
func withoutSecrets(err error) string {
	text, _, _ := strings.Cut(client.OneLine(err.Error()), "{")
	if uri, query, ok := strings.Cut(os.Getenv("ALIBABA_CLOUD_CREDENTIALS_URI"), "?"); ok {
		text = strings.ReplaceAll(text, uri+"?"+query, uri+"?…")
	}
	return strings.TrimRight(text, " :,")
}

// Profile finds the keys of a profile in the configuration file of the vendor's command line.
func Profile(name string) (common.CredentialsProvider, error) {
	chain := func() (credentials.Credential, error) {
		provider, err := providers.NewCLIProfileCredentialsProviderBuilder().WithProfileName(name).Build()
		if err != nil {
			return nil, err
		}
		return credentials.FromCredentialsProvider("cli_profile", provider), nil
	}
	first, err := chain()
	if err == nil {
		_, err = first.GetCredential()
	}
	if err != nil {
		return nil, errors.New(client.OneLine(err.Error()))
	}
	return newChainProvider(first, chain), nil
}

// InEnvironment looks for keys in both families of environment variables. It returns nil if none is set.
func InEnvironment() (common.CredentialsProvider, error) {
	for _, family := range []string{"TABLESTORE", "ALIBABA_CLOUD"} {
		if p, err := Environment(family, ""); p != nil || err != nil {
			return p, err
		}
	}
	return nil, nil
}

// Environment looks for keys in variables such as FAMILY_ACCESS_KEY_ID plus suffix. It returns nil if none is set.
func Environment(family, suffix string) (common.CredentialsProvider, error) {
	var names, values [3]string
	for i, of := range []string{"_ACCESS_KEY_ID", "_ACCESS_KEY_SECRET", "_SECURITY_TOKEN"} {
		names[i] = family + of + suffix
		values[i] = os.Getenv(names[i])
	}
	switch id, secret := values[0], values[1]; {
	case id != "" && secret != "":
		return &common.DefaultCredentialsProvider{AccessKeyID: id, AccessKeySecret: secret, SecurityToken: values[2]}, nil
	case id != "" || secret != "":
		return nil, fmt.Errorf("%s and %s: only one of them is set; set both", names[0], names[1])
	}
	return nil, nil
}

func tell(to func(string), text string) {
	if to != nil {
		to(text)
	}
}

// chainProvider gets keys, which may rotate, from the official chain.
type chainProvider struct {
	again     func() (credentials.Credential, error) // makes a new chain
	chain     atomic.Pointer[credentials.Credential]
	last      atomic.Pointer[common.DefaultCredentials]
	refreshed atomic.Int64 // time of the last Refresh in nanoseconds since 1970
	asked     atomic.Int64 // time when the chain was last asked, in the same unit
	asking    sync.Mutex
}

func newChainProvider(chain credentials.Credential, again func() (credentials.Credential, error)) *chainProvider {
	p := &chainProvider{again: again}
	p.chain.Store(&chain)
	return p
}

// refreshEvery is the shortest time between two new chains.
const refreshEvery = 10 * time.Second

// Refresh makes a new chain. Call it if the service refuses the keys, because the chain caches them until they expire.
func (p *chainProvider) Refresh() {
	last, now := p.refreshed.Load(), time.Now().UnixNano()
	if now-last < int64(refreshEvery) || !p.refreshed.CompareAndSwap(last, now) {
		return
	}
	if chain, err := p.again(); err == nil {
		p.chain.Store(&chain)
		p.asked.Store(0)
	}
}

// keptFor is how long keys are used before the chain, which renews tokens three minutes early, is asked again.
const keptFor = 5 * time.Second

// GetCredentials returns the chain's keys. If the chain fails, it returns the last ones, which may have expired.
func (p *chainProvider) GetCredentials() common.Credentials {
	if last := p.last.Load(); last != nil {
		if time.Now().UnixNano()-p.asked.Load() < int64(keptFor) || !p.asking.TryLock() {
			return last
		}
	} else {
		p.asking.Lock()
	}
	defer p.asking.Unlock()
	defer func() { p.asked.Store(time.Now().UnixNano()) }()
	m, err := (*p.chain.Load()).GetCredential()
	if err != nil {
		if last := p.last.Load(); last != nil {
			return last
		}
		return &common.DefaultCredentials{}
	}
	value := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	now := &common.DefaultCredentials{AccessKeyID: value(m.AccessKeyId), AccessKeySecret: value(m.AccessKeySecret),
		SecurityToken: value(m.SecurityToken)}
	p.last.Store(now)
	return now
}
