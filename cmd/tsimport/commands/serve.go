package commands

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/engine/server"
)

func serveCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Name:  "serve",
		Usage: "serve an embedded store over HTTP, for any Tablestore SDK",
		Description: "Prints one line when it is ready: url=… instance=… access_key_id=… access_key_secret=…\n" +
			"Stops on SIGINT or SIGTERM, after the requests in flight.\n" +
			"The built-in access key is not a secret. For your own, give --access-key-id and put the secret into " +
			secretEnv + "\n" +
			"or --access-key-secret-file; it is never shown. Without these flags " + secretEnv + " is ignored.\n" +
			"The simulation's flags apply to every table; docs/internals/simulation.md describes them,\n" +
			"docs/internals/admin-api.md the admin API under /_engine/, which --admin serves.",
		Flags: append(append(simulationFlags(), quotaFlags()...), []cli.Flag{
			&cli.StringFlag{Name: "store", Usage: "`DIR` of the store, created if missing", Value: defaultStore},
			&cli.BoolFlag{Name: "memory", Usage: "keep all in memory: the store is empty at the start and gone at the end"},
			&cli.StringSliceFlag{Name: "seed", Usage: "load `INPUT[?table=TABLE&pk=COLUMN…]` (files, or an archive) into a " +
				"table that does not exist yet, before the server is ready; repeat it for several"},
			&cli.BoolFlag{Name: "admin", Usage: "serve the admin API under /_engine/: counts, simulation, faults, reset, " +
				"clock; if you set a secret, it is required"},
			&cli.BoolFlag{Name: "ignore-streams", Usage: "accept tables with a stream, as the samples of SDKs create them, " +
				"and describe the stream, but keep none and refuse to read it"},
			&cli.BoolFlag{Name: "any-credentials",
				Usage: "accept every access key, secret and instance, each with its own tables; only on this machine"},
			&cli.StringFlag{Name: "listen", Usage: "`ADDRESS`; port 0 picks a free one", Value: "127.0.0.1:8087"},
			&cli.StringFlag{Name: "tls-cert", Usage: "`FILE` with the certificate and its chain in PEM; clients then use https"},
			&cli.StringFlag{Name: "tls-key", Usage: "`FILE` with the certificate's private key in PEM"},
			&cli.StringFlag{Name: "sync", Usage: "always (acknowledged rows survive a crash) or none (they survive an orderly " +
				"stop)", Value: "always"},
			&cli.StringSliceFlag{Name: "instance",
				Usage: "`NAME` that clients must give; repeat it for several instances, each with its own tables",
				Value: cli.NewStringSlice(server.DefaultInstance)},
			&cli.StringFlag{Name: "access-key-id", Usage: "`ID` of the access key that clients have to use (" +
				server.DefaultAccessKeyID + " if not given)"},
			&cli.StringFlag{Name: "access-key-secret-file", Usage: "`FILE` whose first line is the secret of the access key"},
			&cli.IntFlag{Name: "max-connections", Usage: "at most `N` connections; a new one replaces the one idle longest, " +
				"else the oldest without a known access key, else it waits", Value: server.DefaultLimits.Connections},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "show errors only"},
		}...),
		Action: in.act(serve),
	}
}

func serve(c *call) (err error) {
	o, limits, shown, err := serveOptions(c)
	if err != nil {
		return err
	}
	var seeds []seed
	for _, text := range c.StringSlice("seed") {
		s, err := parseSeed(text)
		if err != nil {
			return err
		}
		seeds = append(seeds, s)
	}
	store, err := server.Open(c.String("store"), o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := plant(c, store, o, seeds); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", c.String("listen"))
	if err != nil {
		return fmt.Errorf("listen on %s: %w", c.String("listen"), err)
	}
	warn(c, listener.Addr(), o, limits)
	scheme := "http"
	if limits.TLS != nil {
		scheme = "https"
	}
	fmt.Fprintf(c.App.Writer, "url=%s://%s instance=%s access_key_id=%s access_key_secret=%s\n",
		scheme, listener.Addr(), o.Instance, o.AccessKeyID, shown)
	if o.InMemory {
		c.say.Line("serving a store in memory, which ends with this process; Ctrl-C stops")
	} else {
		c.say.Line("serving store %s; Ctrl-C stops", c.String("store"))
	}
	return store.ServeListener(c.Context, listener, limits)
}

// serveOptions parses the server's options. shown is the printable form of the secret.
func serveOptions(c *call) (o server.Options, limits server.Limits, shown string, err error) {
	fail := func(err error) (server.Options, server.Limits, string, error) { return o, limits, "", err }
	switch {
	case c.Args().Present():
		return fail(usagef("serve takes no arguments (%q); the store is named with --store", c.Args().First()))
	case c.Bool("memory") && (c.IsSet("store") || c.IsSet("sync")):
		return fail(usagef("--memory keeps nothing on disk: leave out --store and --sync"))
	case c.Int("max-connections") < 1:
		return fail(usagef("--max-connections %d: want at least 1", c.Int("max-connections")))
	}
	o = server.Options{
		InMemory: c.Bool("memory"), NoAdmin: !c.Bool("admin"), AnyCredentials: c.Bool("any-credentials"),
		IgnoreStreams: c.Bool("ignore-streams"),
		Log:           log.New(c.show, "", 0),
	}
	limits.Connections = c.Int("max-connections")
	if host, _, err := net.SplitHostPort(c.String("listen")); err == nil && host != "" {
		o.Hosts = []string{strings.ToLower(host)}
	}
	for _, read := range []func() error{
		func() (err error) { o.NoSync, err = parseSync(c.String("sync")); return },
		func() (err error) { o.Simulation, err = simulation(c); return },
		func() (err error) { o.Faults, err = faultPlan(c); return },
		func() (err error) { shown, err = account(c, &o); return },
		func() error { return setQuotas(c, &o) },
		func() (err error) { limits.TLS, err = serveTLS(c); return },
		func() error { return checkPublicKey(c.String("listen"), o) },
	} {
		if err := read(); err != nil {
			return fail(err)
		}
	}
	return o, limits, shown, nil
}

func serveTLS(c *call) (*tls.Config, error) {
	cert, key := c.String("tls-cert"), c.String("tls-key")
	if cert == "" && key == "" {
		return nil, nil
	}
	if cert == "" || key == "" {
		return nil, usagef("--tls-cert and --tls-key go together: give both")
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, usagef("--tls-cert %s, --tls-key %s: %v", cert, key, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// checkPublicKey refuses to serve other machines with the built-in access key, which is public.
func checkPublicKey(address string, o server.Options) error {
	if o.AccessKeySecret != server.DefaultAccessKeySecret && !o.AnyCredentials {
		return nil
	}
	a, err := net.ResolveTCPAddr("tcp", address)
	if err != nil || a.IP.IsLoopback() { // listening on a wrong address will fail
		return nil
	}
	if o.AnyCredentials {
		return usagef("--listen %s can be reached from other machines, and --any-credentials lets everyone in; listen on "+
			"127.0.0.1, or give --access-key-id and a secret instead", address)
	}
	return usagef("--listen %s can be reached from other machines, and the built-in access key is public; give "+
		"--access-key-id and a secret, or listen on 127.0.0.1", address)
}

// warn warns about risks of the server that is about to serve at addr.
func warn(c *call, addr net.Addr, o server.Options, limits server.Limits) {
	if a, ok := addr.(*net.TCPAddr); ok && !a.IP.IsLoopback() && limits.TLS == nil {
		// --quiet does not hide this warning.
		c.show.say.Warn("%s can be reached from other machines, and traffic is not encrypted; see --tls-cert", a)
	}
	if o.NoSync {
		c.say.Warn("--sync none: acknowledged rows may be lost if this process is killed or the machine crashes")
	}
	if o.Simulation != nil || o.Faults != nil {
		c.say.Line("simulating partitions, capacity or faults as set by the flags%s", statsHint(o))
	}
}

func statsHint(o server.Options) string {
	if o.NoAdmin {
		return "; with --admin /_engine/stats has the counts"
	}
	return "; /_engine/stats has the counts"
}

const (
	secretEnv      = "TABLESTORE_ACCESS_KEY_SECRET"
	maxSecretBytes = 4096
)

// account sets the instance and the access key, and returns the secret for the ready line if it is the built-in one.
func account(c *call, o *server.Options) (shown string, err error) {
	names := c.StringSlice("instance")
	o.Instance, o.More, o.AccessKeyID, o.AccessKeySecret = names[0], names[1:], c.String("access-key-id"),
		server.DefaultAccessKeySecret
	if slices.Contains(names, "") {
		return "", usagef("--instance is empty; leave it out for %s", server.DefaultInstance)
	}
	own := o.AccessKeyID != ""
	if !own {
		o.AccessKeyID = server.DefaultAccessKeyID
	}
	from := ""
	if file := c.String("access-key-secret-file"); file != "" {
		from = "(from-file)"
		if o.AccessKeySecret, err = readSecret(file); err != nil {
			return "", err
		}
	} else if own {
		from = "(from-environment)"
		if o.AccessKeySecret = os.Getenv(secretEnv); o.AccessKeySecret == "" {
			return "", usagef("--access-key-id %s: no secret; set %s or give --access-key-secret-file", o.AccessKeyID, secretEnv)
		}
	}
	if err := o.Check(); err != nil {
		return "", usagef("%v", err)
	}
	if from == "" || o.AccessKeySecret == server.DefaultAccessKeySecret {
		return server.DefaultAccessKeySecret, nil
	}
	return from, nil
}

// readSecret reads the first line of a file, up to the maximum length of a secret.
func readSecret(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", usagef("--access-key-secret-file: %v", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSecretBytes+1))
	if err != nil {
		return "", usagef("--access-key-secret-file: %v", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	line = strings.TrimSuffix(line, "\r")
	if line == "" || len(line) > maxSecretBytes {
		return "", usagef("--access-key-secret-file %s: its first line is empty or longer than %d bytes", name,
			maxSecretBytes)
	}
	return line, nil
}

// quotaFlags returns serve's flags for limits of table operations and of the instance.
func quotaFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "max-tables", Usage: "maximum number of tables `N`; 0 means no limit, the service's is 64"},
		&cli.IntFlag{Name: "table-ops", Usage: "table operations `N` in any second; 0 means no limit, the service's is 10"},
		&cli.Float64Flag{Name: "limit-instance", Usage: "write capacity `UNITS` a second of all tables together; requests " +
			"above are refused with 429 OTSFlowControl; 0 means no limit"},
		&cli.DurationFlag{Name: "throughput-interval",
			Usage: "minimum `DURATION` between two changes of a table's reserved throughput; 0 means none",
			Value: server.DefaultThroughputInterval},
	}
}

func setQuotas(c *call, o *server.Options) error {
	for _, name := range []string{"max-tables", "table-ops"} {
		if n := c.Int(name); n < 0 {
			return usagef("--%s must not be negative, got %d", name, n)
		}
	}
	if n := c.Float64("limit-instance"); !(n >= 0) || math.IsInf(n, 0) {
		return usagef("--limit-instance %v: want a number above 0, or 0 for no limit", n)
	}
	o.InstanceUnits = c.Float64("limit-instance")
	interval := c.Duration("throughput-interval")
	switch {
	case interval < 0:
		return usagef("--throughput-interval must not be negative, got %s", interval)
	case interval == 0:
		interval = -time.Nanosecond // 0 would mean the default
	}
	o.MaxTables, o.TableOps, o.ThroughputInterval = c.Int("max-tables"), c.Int("table-ops"), interval
	return nil
}
