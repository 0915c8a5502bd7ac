package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/aliyun/credentials-go/credentials"
	"github.com/urfave/cli/v2"

	"tsimport/engine/server"
	"tsimport/internal/tablestore/client"
)

const (
	defaultStore = "./tsimport-store"
	endpointEnv  = "TABLESTORE_ENDPOINT"
	instanceEnv  = "TABLESTORE_INSTANCE"
)

func targetFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "endpoint", Usage: "`URL` of the Tablestore service, http(s)://host[:port] (or " + endpointEnv + ")"},
		&cli.StringFlag{Name: "instance", Usage: "`NAME` of the instance (or " + instanceEnv + ")"},
		&cli.StringFlag{Name: "store", Usage: "`DIR` of an embedded store instead of a service (default " + defaultStore + " without --endpoint)"},
		&cli.DurationFlag{Name: "request-timeout", Usage: "how long one request may take", Value: client.DefaultRequestTimeout},
	}
}

// target is the Tablestore that a command works on.
type target struct {
	client.Target
	name     string
	embedded bool
	dir      string // of an embedded store
	missing  bool   // an embedded store that does not exist, and was not to be made
	store    *server.Server
}

// access says what a command does with an embedded store.
type access struct {
	readOnly bool
	create   bool // make the store if it is missing
	noSync   bool
}

// openTarget finds out which Tablestore the flags and the environment mean and opens it. The first line on stderr says
// which it is.
func openTarget(c *cli.Context, a access, stderr io.Writer) (*target, error) {
	endpoint, store := c.String("endpoint"), c.String("store")
	if endpoint != "" && store != "" {
		return nil, usagef("--endpoint and --store: give one of them")
	}
	if endpoint == "" && store == "" {
		endpoint = os.Getenv(endpointEnv)
	}
	if c.Duration("request-timeout") <= 0 {
		return nil, usagef("--request-timeout %v: want more than 0", c.Duration("request-timeout"))
	}
	if endpoint != "" {
		if err := client.CheckEndpoint(endpoint); err != nil {
			return nil, usagef("%v", err)
		}
		return remoteTarget(c, endpoint, stderr)
	}
	if store == "" {
		store = defaultStore
	}
	t := &target{name: "embedded store " + store, embedded: true, dir: store}
	if c.String("instance") != "" {
		return nil, usagef("--instance %s: an embedded store has no instances; give --endpoint too", c.String("instance"))
	}
	say(c, stderr, "target: %s", t.name)
	if _, err := os.Stat(store); errors.Is(err, fs.ErrNotExist) && !a.create {
		t.missing = true
		return t, nil
	}
	s, err := server.Open(store, server.Options{ReadOnly: a.readOnly, NoSync: a.noSync})
	if err != nil {
		return nil, err
	}
	t.store = s
	t.Target = client.Target{
		Endpoint: "http://embedded", Instance: server.DefaultInstance, Transport: s.Transport(),
		Credentials:    &common.DefaultCredentialsProvider{AccessKeyID: server.DefaultAccessKeyID, AccessKeySecret: server.DefaultAccessKeySecret},
		RequestTimeout: c.Duration("request-timeout"),
	}
	return t, nil
}

// sameFolder reports whether two paths name one folder.
func sameFolder(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// mustExist returns an error for an embedded store that does not exist.
func (t *target) mustExist() error {
	if t.missing {
		return usagef("%s does not exist; load a file first, or name another with --store", t.name)
	}
	return nil
}

// close releases an embedded store. Every acknowledged row is in it.
func (t *target) close() error {
	if t.store == nil {
		return nil
	}
	return t.store.Close()
}

func remoteTarget(c *cli.Context, endpoint string, stderr io.Writer) (*target, error) {
	instance := c.String("instance")
	if instance == "" {
		instance = os.Getenv(instanceEnv)
	}
	if instance == "" {
		return nil, usagef("no instance: give --instance or %s", instanceEnv)
	}
	provider, err := findCredentials(c)
	if err != nil {
		return nil, err
	}
	t := &target{name: fmt.Sprintf("instance %s at %s", instance, endpoint)}
	warnOfPlainHTTP(stderr, endpoint, provider)
	t.Target = client.Target{Endpoint: endpoint, Instance: instance, Credentials: provider, RequestTimeout: c.Duration("request-timeout")}
	say(c, stderr, "target: %s", t.name)
	return t, nil
}

// warnOfPlainHTTP says what others on the way can read and use. --quiet does not hide it.
func warnOfPlainHTTP(stderr io.Writer, endpoint string, provider common.CredentialsProvider) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" || u.Hostname() == "localhost" {
		return
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && ip.Unmap().IsLoopback() {
		return
	}
	what := "rows are not encrypted"
	if provider.GetCredentials().GetSecurityToken() != "" {
		what = "neither rows nor the security token are encrypted"
	}
	fmt.Fprintf(stderr, "tsimport: warning: the endpoint %s is http: %s; use https unless the network is your own\n", endpoint, what)
}

// say shows a line to the user unless --quiet.
func say(c *cli.Context, stderr io.Writer, format string, a ...any) {
	if !c.Bool("quiet") {
		fmt.Fprintf(stderr, "tsimport: %s\n", printable(fmt.Sprintf(format, a...)))
	}
}

// findCredentials looks where the SDKs look: the environment's two families of names, then the provider chain of the
// official credentials library (profile, RAM role, OIDC, ECS).
func findCredentials(c *cli.Context) (common.CredentialsProvider, error) {
	for _, names := range [][3]string{
		{"TABLESTORE_ACCESS_KEY_ID", "TABLESTORE_ACCESS_KEY_SECRET", "TABLESTORE_SECURITY_TOKEN"},
		{"ALIBABA_CLOUD_ACCESS_KEY_ID", "ALIBABA_CLOUD_ACCESS_KEY_SECRET", "ALIBABA_CLOUD_SECURITY_TOKEN"},
	} {
		id, secret := os.Getenv(names[0]), os.Getenv(names[1])
		if id != "" && secret != "" {
			return &common.DefaultCredentialsProvider{AccessKeyID: id, AccessKeySecret: secret, SecurityToken: os.Getenv(names[2])}, nil
		}
		if id != "" || secret != "" {
			return nil, usagef("%s and %s: only one of them is set", names[0], names[1])
		}
	}
	say(c, c.App.ErrWriter, "no access key in the environment: asking the credentials provider chain (profile, OIDC, then the address of the machine's metadata, unless ALIBABA_CLOUD_ECS_METADATA_DISABLED=true)")
	chain, err := credentials.NewCredential(nil)
	if err == nil {
		_, err = chain.GetCredential()
	}
	if err != nil {
		if c.Bool("verbose") {
			say(c, c.App.ErrWriter, "the credentials provider chain says: %s", client.OneLine(err.Error()))
		}
		return nil, usagef("no access key found; set TABLESTORE_ACCESS_KEY_ID and TABLESTORE_ACCESS_KEY_SECRET, or configure a provider of the Alibaba Cloud chain")
	}
	p := new(chainProvider)
	p.chain.Store(&chain)
	return p, nil
}

// chainProvider asks the official chain for every request: its keys may rotate.
type chainProvider struct {
	chain     atomic.Pointer[credentials.Credential]
	last      atomic.Pointer[common.DefaultCredentials]
	refreshed atomic.Int64 // when, in nanoseconds since 1970
}

// refreshEvery is the least time between two requests to the chain.
const refreshEvery = 10 * time.Second

// Refresh makes a new chain: the one there is keeps its keys until they expire, and the service has refused them.
func (p *chainProvider) Refresh() {
	last, now := p.refreshed.Load(), time.Now().UnixNano()
	if now-last < int64(refreshEvery) || !p.refreshed.CompareAndSwap(last, now) {
		return
	}
	if chain, err := credentials.NewCredential(nil); err == nil {
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
