package accesskey

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"tsimport/internal/tablestore/client"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/aliyun/credentials-go/credentials"
	"github.com/aliyun/credentials-go/credentials/providers"
)

// Find looks where the SDKs look: the environment's two families of names, then the provider chain of the official credentials
// library (profile, RAM role, OIDC, ECS). Note is told before the chain is asked, which may take a while, and detail why the
// chain has no keys; both may be nil.
func Find(note, detail func(text string)) (common.CredentialsProvider, error) {
	if p, err := InEnvironment(); p != nil || err != nil {
		return p, err
	}
	tell(note, "no access key in the environment: asking the credentials provider chain (profile, OIDC, then the address of the machine's metadata, unless ALIBABA_CLOUD_ECS_METADATA_DISABLED=true)")
	chain, err := credentials.NewCredential(nil)
	if err == nil {
		_, err = chain.GetCredential()
	}
	if err != nil {
		tell(detail, "the credentials provider chain says: "+client.OneLine(err.Error()))
		return nil, errors.New("no access key found; set TABLESTORE_ACCESS_KEY_ID and TABLESTORE_ACCESS_KEY_SECRET, or configure a provider of the Alibaba Cloud chain")
	}
	return newChainProvider(chain, func() (credentials.Credential, error) { return credentials.NewCredential(nil) }), nil
}

// Profile finds the keys of a profile of the vendor's command line, in its own file.
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

// InEnvironment looks in the environment's two families of names. It returns nil if none is set.
func InEnvironment() (common.CredentialsProvider, error) {
	for _, family := range []string{"TABLESTORE", "ALIBABA_CLOUD"} {
		if p, err := Environment(family, ""); p != nil || err != nil {
			return p, err
		}
	}
	return nil, nil
}

// Environment looks in variables of the environment alone: FAMILY_ACCESS_KEY_ID and so on, with a suffix. It returns nil if they are
// not set.
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
		return nil, fmt.Errorf("%s and %s: only one of them is set", names[0], names[1])
	}
	return nil, nil
}

func tell(to func(string), text string) {
	if to != nil {
		to(text)
	}
}

// chainProvider asks the official chain for every request: its keys may rotate.
type chainProvider struct {
	again     func() (credentials.Credential, error) // makes the chain again
	chain     atomic.Pointer[credentials.Credential]
	last      atomic.Pointer[common.DefaultCredentials]
	refreshed atomic.Int64 // when, in nanoseconds since 1970
}

func newChainProvider(chain credentials.Credential, again func() (credentials.Credential, error)) *chainProvider {
	p := &chainProvider{again: again}
	p.chain.Store(&chain)
	return p
}

// refreshEvery is the least time between two requests to the chain.
const refreshEvery = 10 * time.Second

// Refresh makes a new chain: the one there is keeps its keys until they expire, and the service has refused them.
func (p *chainProvider) Refresh() {
	last, now := p.refreshed.Load(), time.Now().UnixNano()
	if now-last < int64(refreshEvery) || !p.refreshed.CompareAndSwap(last, now) {
		return
	}
	if chain, err := p.again(); err == nil {
		p.chain.Store(&chain)
	}
}

// GetCredentials returns the last keys when the chain fails for a moment. If they have expired, the service's refusal is
// the error a user sees: the SDK has no way to pass another.
func (p *chainProvider) GetCredentials() common.Credentials {
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
	now := &common.DefaultCredentials{AccessKeyID: value(m.AccessKeyId), AccessKeySecret: value(m.AccessKeySecret), SecurityToken: value(m.SecurityToken)}
	p.last.Store(now)
	return now
}
