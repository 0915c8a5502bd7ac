package main

import (
	"bufio"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/bench"
	"example.com/tsimport/bench/null"
)

// seed is the seed of all inputs and of rows in tables.
const seed = 1

type counts struct {
	Requests    int64 `json:"requests"` // writes
	Rows        int64 `json:"rows"`
	Connections int64 `json:"connections"`
}

func nullServerCommand() *cli.Command {
	return &cli.Command{
		Name:  "null-server",
		Usage: "run a Tablestore that acknowledges writes and stores nothing",
		Description: "Prints url=… when it is ready. It accepts any instance, and every\n" +
			"table exists, with the integer key id. It signs its answers with the access\n" +
			"key in TABLESTORE_ACCESS_KEY_ID and TABLESTORE_ACCESS_KEY_SECRET; clients need the same one. For each line on\n" +
			"its standard input it prints its counters as JSON. It stops at the end of its input.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Usage: "`ADDRESS`; port 0 picks a free one", Value: "127.0.0.1:0"},
			&cli.DurationFlag{Name: "latency", Usage: "delay of answers to requests that write rows"},
			&cli.IntFlag{Name: "partitions", Usage: "partitions of every table", Value: 1},
			&cli.StringFlag{Name: "shape", Usage: "shape of the rows in every table", Value: "12"},
			&cli.Uint64Flag{Name: "rows", Usage: "number of rows in every table; 0 for none, if they are not read"},
			&cli.StringFlag{Name: "tls-ca", Usage: "use TLS, and write the certificate, which clients must trust, to `FILE`"},
		},
		Action: nullServer,
	}
}

func nullServer(c *cli.Context) error {
	o := null.Options{
		Latency: c.Duration("latency"), Partitions: c.Int("partitions"), TLS: c.String("tls-ca") != "",
		AccessKeyID: os.Getenv("TABLESTORE_ACCESS_KEY_ID"), AccessKeySecret: os.Getenv("TABLESTORE_ACCESS_KEY_SECRET"),
	}
	if n := c.Uint64("rows"); n > 0 {
		shape, err := bench.FindShape(c.String("shape"))
		if err == nil {
			o.Rows, err = null.RowsOf(shape, n, seed)
		}
		if err != nil {
			return err
		}
	}
	s, err := null.Start(c.String("listen"), o)
	if err != nil {
		return err
	}
	if o.TLS {
		certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
		if err := os.WriteFile(c.String("tls-ca"), certificate, 0o644); err != nil {
			return fmt.Errorf("write the certificate: %w", err)
		}
	}
	fmt.Fprintf(c.App.Writer, "url=%s instance=null access_key_id=%s access_key_secret=%s\n", s.URL, o.AccessKeyID,
		o.AccessKeySecret)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			if json.NewEncoder(c.App.Writer).Encode(counts{s.Requests.Load(), s.Rows.Load(), s.Connections.Load()}) != nil {
				return
			}
		}
	}()
	select {
	case <-ended:
	case <-c.Context.Done():
	}
	return c.Context.Err()
}

// counts requests the counters of a null server by writing a line.
func (s *server) counts() (c counts, err error) {
	var line []byte
	if _, err = fmt.Fprintln(s.ask); err == nil {
		if line, err = s.answers.ReadBytes('\n'); err == nil {
			err = json.Unmarshal(line, &c)
		}
	}
	if err != nil {
		return c, fmt.Errorf("read the counters of the null server: %w", err)
	}
	return c, nil
}
