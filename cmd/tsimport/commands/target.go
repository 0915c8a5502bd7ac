package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/tablestore/accesskey"
	"example.com/tsimport/internal/tablestore/address"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/profile"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
)

const (
	defaultStore = "./tsimport-store"
	endpointEnv  = "TABLESTORE_ENDPOINT"
	instanceEnv  = "TABLESTORE_INSTANCE"
)

// toServices returns the transport to services; nil means the network. Tests replace it with an engine.
var toServices = func(context.Context) http.RoundTripper { return nil }

type target struct {
	client.Target
	name     string
	embedded bool
	dir      string // folder of an embedded store
	missing  bool   // the embedded store does not exist and must not be created
	store    *server.Server
	shared   bool // several loads share the store, so it is not closed with one of them
}

// access describes how a command uses an embedded store.
type access struct {
	readOnly bool
	create   bool // create a missing store
	noSync   bool
	role     string // role of the store in messages; "" means target
}

func (a access) as() string { return cmp.Or(a.role, "target") }

// openTarget determines the Tablestore from flags and environment, opens it, and names it in the first line on stderr.
func openTarget(c *call, a access) (*target, error) {
	if c.in.target != nil {
		return c.in.target, nil
	}
	endpoint, store := c.of.Endpoint, c.of.Store
	if endpoint != "" && store != "" {
		return nil, usagef("--endpoint and --store: give only one of them")
	}
	of, err := profileOf(c)
	if err != nil {
		return nil, err
	}
	if endpoint == "" && store == "" {
		endpoint, _, err = serviceOf(c)
		if err != nil {
			return nil, err
		}
		if endpoint == "" && c.in.task != nil {
			return nil, usagef("neither the job's plan nor this machine names an endpoint: set %s", endpointEnv)
		}
		if endpoint == "" && of.Name != "" {
			return nil, usagef("--profile %s has no endpoint: set %s, or name one in %s", of.Name,
				address.Variable(endpointEnv, of.Name), profile.File())
		}
	}
	if endpoint != "" {
		if err := client.CheckEndpoint(endpoint); err != nil {
			return nil, usagef("%v", err)
		}
		return remoteTarget(c, endpoint, a)
	}
	store = cmp.Or(store, defaultStore)
	t := &target{name: "embedded store " + store, embedded: true, dir: store}
	if c.of.Instance != "" {
		return nil, usagef("--instance %s: an embedded store has no instances; give --endpoint too", c.of.Instance)
	}
	tellTarget(c, a.as()+": "+t.name)
	if s := c.in.session; s != nil {
		return s.openStore(t, a, c.of.RequestTimeout)
	}
	return t.openStore(a, c.of.RequestTimeout)
}

func (t *target) of(cfg *pipeline.Config, noSync bool) (err error) {
	cfg.Target.Client, cfg.Target.Name, cfg.Target.Absent = t.Target, t.name, t.missing
	if !t.embedded {
		return nil
	}
	if options.Same(cfg.RunDir, t.dir) {
		return usagef("--run-dir %s is the folder of the embedded store; give another", cfg.RunDir)
	}
	cfg.Write.Settle = cmp.Or(cfg.Write.Settle, time.Millisecond) // no request to an embedded store can be late
	if t.store != nil && noSync {
		cfg.Checkpoint.Sync = t.store.Sync
	}
	cfg.Target.Place, err = t.identity()
	return err
}

// openStore opens the target's embedded store, if it exists or may be created.
func (t *target) openStore(a access, timeout time.Duration) (*target, error) {
	store := t.dir
	if _, err := os.Stat(store); errors.Is(err, fs.ErrNotExist) && !a.create {
		t.missing = true
		return t, nil
	}
	s, err := server.Open(store, server.Options{ReadOnly: a.readOnly, NoSync: a.noSync})
	if err != nil {
		return nil, err
	}
	t.store = s
	t.reach(s, timeout)
	return t, nil
}

// reach sets the target to a store in this process.
func (t *target) reach(s *server.Server, timeout time.Duration) {
	t.Target = client.Target{
		Endpoint: "http://embedded", Instance: server.DefaultInstance, Transport: s.SameMemory(),
		Credentials: &common.DefaultCredentialsProvider{AccessKeyID: server.DefaultAccessKeyID,
			AccessKeySecret: server.DefaultAccessKeySecret},
		RequestTimeout: timeout,
	}
}

func (t *target) mustExist() error {
	if t.missing {
		return &plan.UsageError{Message: t.name + " does not exist; load a file, or give another --store", NoTable: true}
	}
	return nil
}

// place identifies a table among all tables that a job's loads read and write.
func (t *target) place(table string) string { return t.name + "\x00" + table }

// close releases an embedded store, which holds every acknowledged row.
func (t *target) close() error {
	if t.store == nil || t.shared {
		return nil
	}
	return t.store.Close()
}

// profileOf returns the profile of --profile, or an empty profile without that flag.
func profileOf(c *call) (*profile.Profile, error) {
	if c.of.Profile == "" {
		return new(profile.Profile), nil
	}
	p, err := profile.Find(c.of.Profile)
	if err != nil {
		return nil, usagef("--profile: %v", err)
	}
	return p, nil
}

// serviceOf returns the service named by flags, the environment or a profile, or "" if none is.
func serviceOf(c *call) (endpoint, instance string, err error) {
	of, err := profileOf(c)
	if err != nil {
		return "", "", err
	}
	endpoint, instance = os.Getenv(endpointEnv), os.Getenv(instanceEnv)
	if c.in.session != nil && of.Name != "" { // a job's profile precedes the environment
		endpoint, instance = cmp.Or(of.Endpoint, endpoint), cmp.Or(of.Instance, instance)
	}
	return cmp.Or(c.of.Endpoint, endpoint, of.Endpoint), cmp.Or(c.of.Instance, instance, of.Instance), nil
}

func remoteTarget(c *call, endpoint string, a access) (*target, error) {
	_, instance, err := serviceOf(c)
	if err != nil {
		return nil, err
	}
	if instance == "" {
		return nil, usagef("no instance: give --instance or %s", instanceEnv)
	}
	provider, err := findCredentials(c)
	if err != nil {
		return nil, err
	}
	t := &target{name: fmt.Sprintf("instance %s at %s", instance, endpoint)}
	warnOfPlainHTTP(c.show, endpoint, provider)
	if err := t.remote(c, endpoint, instance, provider); err != nil {
		return nil, err
	}
	tellTarget(c, a.as()+": "+t.name)
	return t, nil
}

func tellTarget(c *call, text string) {
	if s := c.in.session; s != nil && c.show.log == nil { // in a log each load names its own
		s.tell(c.show, text)
	} else if !c.of.Quiet {
		c.show.say.Line("%s", text)
	}
}

func (t *target) remote(c *call, endpoint, instance string, provider common.CredentialsProvider) error {
	t.Target = client.Target{Endpoint: endpoint, Instance: instance, Credentials: provider,
		Transport: toServices(c.Context), RequestTimeout: c.of.RequestTimeout}
	accept, err := client.AcceptUnsigned()
	switch {
	case err != nil:
		return usagef("%v", err)
	case !accept:
	case destroys(c):
		c.show.say.Warn("%s=accept does not apply to deleting rows, or changing or deleting tables", client.UnsignedVariable)
	default:
		t.AcceptUnsigned = true
		c.show.say.Warn("%s=accept: anyone on the network path can report unwritten rows as written", client.UnsignedVariable)
	}
	return nil
}

// destroys reports whether a command deletes rows, or changes or drops tables, based on answers of the service.
func destroys(c *call) bool {
	return slices.Contains([]string{"age", "drop", "update", "delete"}, c.Command.Name) || c.of.Delete ||
		c.of.Mode == "delete"
}

// warnOfPlainHTTP warns that others on the network can read an http connection. --quiet does not hide it.
func warnOfPlainHTTP(show *display, endpoint string, provider common.CredentialsProvider) {
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
	show.say.Warn("the endpoint %s is http: %s; use https unless the network is your own", endpoint, what)
}

// keysOf finds access keys where the SDKs look for them; the environment precedes a profile.
func keysOf(ctx context.Context, of *profile.Profile, note func(string)) (common.CredentialsProvider, error) {
	if of.Name == "" {
		return accesskey.Find(ctx, note)
	}
	if provider, err := accesskey.InEnvironment(); provider != nil || err != nil {
		if err == nil {
			note("using the access key of the environment, not that of profile " + of.Name)
		}
		return provider, err
	}
	provider, _, err := of.Keys()
	return provider, err
}

// findCredentials finds the access keys of a command. Missing keys are a usage error.
func findCredentials(c *call) (common.CredentialsProvider, error) {
	note := func(text string) { c.say.Line("%s", text) }
	of, err := profileOf(c)
	if err != nil {
		return nil, err
	}
	provider, err := keysOf(c.Context, of, note)
	if err != nil && c.Context.Err() == nil && !errors.As(err, new(*accesskey.DownError)) {
		return nil, usagef("%v", err)
	}
	return provider, err
}
