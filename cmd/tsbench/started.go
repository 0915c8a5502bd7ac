package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/urfave/cli/v2"

	"example.com/tsimport/bench"
	"example.com/tsimport/bench/baseline"
	"example.com/tsimport/bench/cost"
	"example.com/tsimport/bench/null"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/pipeline/plan"
)

// What client starts. Each has its endpoint, instance and access key from the environment.
var (
	endpoint  = os.Getenv("TABLESTORE_ENDPOINT")
	instance  = os.Getenv("TABLESTORE_INSTANCE")
	keyID     = os.Getenv("TABLESTORE_ACCESS_KEY_ID")
	keySecret = os.Getenv("TABLESTORE_ACCESS_KEY_SECRET")
)

func nullServerCommand() *cli.Command {
	return &cli.Command{
		Name:  "null-server",
		Usage: "a Tablestore that answers success and keeps nothing",
		Description: "Prints url=… when it is ready; any instance will do, and every\n" +
			"table is there, with the integer key id. It signs its answers with the access\n" +
			"key in TABLESTORE_ACCESS_KEY_ID and TABLESTORE_ACCESS_KEY_SECRET; clients need the same one. For each line on\n" +
			"its standard input it prints what it has counted, as JSON; at the end of its input it ends.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Usage: "`ADDRESS`; port 0 picks a free one", Value: "127.0.0.1:0"},
			&cli.DurationFlag{Name: "latency", Usage: "of a BatchWriteRow"},
			&cli.IntFlag{Name: "partitions", Usage: "of every table", Value: 1},
			&cli.StringFlag{Name: "shape", Usage: "of the rows that every table has to read", Value: "12"},
			&cli.Uint64Flag{Name: "rows", Usage: "that every table has; 0 is none, to be read by nobody"},
			&cli.StringFlag{Name: "tls-ca", Usage: "speak TLS and write the certificate, which clients must trust, to `FILE`"},
		},
		Action: nullServer,
	}
}

func nullServer(c *cli.Context) error {
	o := null.Options{Latency: c.Duration("latency"), Partitions: c.Int("partitions"), First: bench.FirstID, Last: bench.LastID,
		AccessKeyID: keyID, AccessKeySecret: keySecret}
	if n := c.Uint64("rows"); n > 0 {
		shape, err := bench.FindShape(c.String("shape"))
		if err == nil {
			o.Rows, err = cost.StoredRows(shape, n)
		}
		if err != nil {
			return fmt.Errorf("make rows: %w", err)
		}
	}
	scheme := "http"
	if file := c.String("tls-ca"); file != "" {
		config, pem, err := null.NewCertificate()
		if err != nil {
			return fmt.Errorf("make a certificate: %w", err)
		}
		if err := os.WriteFile(file, pem, 0o644); err != nil {
			return fmt.Errorf("write the certificate: %w", err)
		}
		o.TLS, scheme = config, "https"
	}
	listener, err := net.Listen("tcp", c.String("listen"))
	if err != nil {
		return err
	}
	sink := null.New(o)
	context.AfterFunc(c.Context, func() { listener.Close() })
	fmt.Fprintf(c.App.Writer, "url=%s://%s\n", scheme, listener.Addr())
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			counts := cost.Counts{Requests: sink.Requests.Load(), Rows: sink.Rows.Load(), Connections: sink.Connections.Load()}
			if json.NewEncoder(c.App.Writer).Encode(counts) != nil {
				break
			}
		}
		listener.Close()
	}()
	return sink.Serve(listener)
}

func baselineCommand() *cli.Command {
	return &cli.Command{
		Name:        "baseline",
		Usage:       "load a file with the SDK",
		ArgsUsage:   "WAY",
		Hidden:      true,
		Description: "The environment is that of client's --baseline-cmd; WAY is sequential, workers or timeline.",
		Action:      loadBaseline,
	}
}

func loadBaseline(c *cli.Context) error {
	load, ok := baseline.Ways[c.Args().First()]
	if !ok {
		return plan.Usagef("baseline: want sequential, workers or timeline")
	}
	l := baseline.Load{File: os.Getenv("BENCH_FILE"), Table: os.Getenv("BENCH_TABLE")}
	for _, text := range strings.Split(os.Getenv("BENCH_COLUMNS"), ",") {
		name, kind, _ := strings.Cut(text, ":")
		kinds := map[string]baseline.Kind{"integer": baseline.Integer, "double": baseline.Double, "string": baseline.String}
		k, ok := kinds[kind]
		if !ok {
			return plan.Usagef("BENCH_COLUMNS: %q: want NAME:integer, :double or :string", text)
		}
		l.Columns = append(l.Columns, baseline.Column{Name: name, Kind: k})
	}
	l.Client = tablestore.NewClientWithConfig(endpoint, instance, keyID, keySecret, "", nil)
	if _, err := load(l, c.Context); err != nil {
		return fmt.Errorf("%s: %w", c.Args().First(), &client.Error{Cause: err})
	}
	return json.NewEncoder(c.App.Writer).Encode(used())
}

func scanTableCommand() *cli.Command {
	return &cli.Command{
		Name:        "scan-table",
		Usage:       "read a table as comparisons and copies do, and do nothing with its rows",
		ArgsUsage:   "TABLE",
		Hidden:      true,
		Description: "The environment is that of client's --baseline-cmd.",
		Action:      scanTable,
	}
}

func scanTable(c *cli.Context) error {
	sdk, err := client.New(c.Context, client.Target{Endpoint: endpoint, Instance: instance,
		Credentials: &common.DefaultCredentialsProvider{AccessKeyID: keyID, AccessKeySecret: keySecret}}, nil)
	if err != nil {
		return err
	}
	t, err := (&client.Admin{Client: sdk, Context: c.Context}).Describe(c.Args().First())
	if err != nil {
		return err
	}
	if err := scan.Packed(c.Context, sdk, t.Name, t.Key, scan.Options{}, new(scan.PackedPage), func(int) error { return nil }); err != nil {
		return err
	}
	return json.NewEncoder(c.App.Writer).Encode(used())
}
