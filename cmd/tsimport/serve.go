package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/urfave/cli/v2"

	"tsimport/engine/server"
)

func serveCommand() *cli.Command {
	return &cli.Command{
		Name:  "serve",
		Usage: "serve an embedded store over HTTP, for any Tablestore SDK",
		Description: "Prints one line when it is ready: url=… instance=… access_key_id=… access_key_secret=…\n" +
			"Stops on SIGINT or SIGTERM, after the requests under way.\n" +
			"The simulation's flags apply to every table; docs/engine.md describes them and the admin API under /_engine/.",
		Flags: append(append(simulationFlags(), quotaFlags()...), []cli.Flag{
			&cli.StringFlag{Name: "store", Usage: "`DIR` of the store, made if missing", Value: defaultStore},
			&cli.StringFlag{Name: "listen", Usage: "`ADDRESS`; port 0 picks a free one", Value: "127.0.0.1:8087"},
			&cli.StringFlag{Name: "sync", Usage: "always (acknowledged rows survive a crash) or none", Value: "always"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "show errors only"},
		}...),
		Action: serve,
	}
}

// How long an HTTP client may take, and how long a stopping server waits for requests under way.
const (
	headerTimeout   = 10 * time.Second
	bodyTimeout     = time.Minute
	idleTimeout     = 2 * time.Minute
	shutdownTimeout = 30 * time.Second
	maxHeaderBytes  = 64 << 10
)

func serve(c *cli.Context) (err error) {
	if c.Args().Present() {
		return usagef("serve takes no arguments (%q); the store is named with --store", c.Args().First())
	}
	noSync, err := parseSync(c.String("sync"))
	if err != nil {
		return err
	}
	simulated, err := simulation(c)
	if err != nil {
		return err
	}
	plan, err := faultPlan(c)
	if err != nil {
		return err
	}
	options := server.Options{NoSync: noSync, Simulation: simulated, Faults: plan}
	if err := setQuotas(c, &options); err != nil {
		return err
	}
	store, err := server.Open(c.String("store"), options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	listener, err := net.Listen("tcp", c.String("listen"))
	if err != nil {
		return fmt.Errorf("listen on %s: %w", c.String("listen"), err)
	}
	if a, ok := listener.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		say(c, c.App.ErrWriter, "warning: %s can be reached from other machines, and the access key is no secret", a)
	}
	if noSync {
		say(c, c.App.ErrWriter, "warning: --sync none: a crash of the machine loses acknowledged rows")
	}
	if simulated != nil || plan != nil {
		say(c, c.App.ErrWriter, "simulating partitions, capacity or faults, as the flags say; /_engine/stats has the counts")
	}
	web := &http.Server{
		Handler: store, ReadHeaderTimeout: headerTimeout, ReadTimeout: bodyTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
	}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listener) }()
	fmt.Fprintf(c.App.Writer, "url=http://%s instance=%s access_key_id=%s access_key_secret=%s\n",
		listener.Addr(), server.DefaultInstance, server.DefaultAccessKeyID, server.DefaultAccessKeySecret)
	say(c, c.App.ErrWriter, "serving store %s; Ctrl-C stops", c.String("store"))
	select {
	case err := <-failed:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-c.Context.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context), shutdownTimeout)
	defer cancel()
	if err := web.Shutdown(ctx); err != nil {
		return fmt.Errorf("finish the requests under way: %w", err)
	}
	return nil
}
