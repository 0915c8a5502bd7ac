package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/words"
	"example.com/tsimport/jobs/scaleout"
)

func statusCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Name: "status", Usage: "show the progress of a load on many machines", ArgsUsage: "JOBDIR",
		Description: "Shows what the job directory says about splits, shards, workers, rates, rejects and the time left " +
			"(docs/many-machines.md).",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "print JSON"},
			&cli.StringFlag{Name: "listen", Usage: "serve /status and /metrics at `ADDRESS`, as 127.0.0.1:9180, until Ctrl-C"},
		},
		Action: in.act(func(c *call) error {
			if c.NArg() != 1 {
				return usagef("tsimport status takes one job directory, not %d", c.NArg())
			}
			store, err := openJobDir(c, c.Args().First())
			if err != nil {
				return err
			}
			if l, err := scaleout.ReadLoads(c.Context, store); l != nil || err != nil {
				switch {
				case err != nil:
					return err
				case c.String("listen") != "":
					return usagef("--listen: %s has many loads; name the folder of one, such as %s", store,
						scaleout.FolderOf(l.Loads[0].Name))
				}
				return severalStatus(c, store, l)
			}
			w, err := scaleout.NewWatcher(c.Context, store)
			if err != nil {
				return err
			}
			if address := c.String("listen"); address != "" {
				return serveJob(c.interrupts.drain, c, w, address)
			}
			s, err := w.Status(c.Context)
			if err != nil {
				return err
			}
			return printed(c, s, func(w io.Writer) error { return writeLines(w, jobLines(s)) })
		}),
	}
}

func jobLines(s *scaleout.Status) (lines []string) {
	first := fmt.Sprintf("%s: load into %s, planned %s", s.State, s.Table, s.Planned.Local().Format("2006-01-02 15:04:05"))
	if s.ExitCode != nil {
		first += fmt.Sprintf(" (exit code %d)", *s.ExitCode)
	}
	lines = append(lines, first)
	if s.Stopped != "" {
		lines = append(lines, "stopped: "+s.Stopped+"; tsimport resume continues it")
	}
	for _, st := range s.Stages {
		lines = append(lines, fmt.Sprintf("%-7s %d of %d tasks done, %d held", st.Stage, st.Done, st.Tasks, st.Held))
	}
	lines = append(lines, fmt.Sprintf("%s read (%.0f a second), %s written (%.0f a second), %s rejected, %s superseded, "+
		"in tasks that are done",
		words.Grouped(s.Read), s.ReadRate, words.Grouped(s.Written), s.WriteRate, words.Grouped(s.Rejected),
		words.Grouped(s.Superseded)))
	if s.SecondsLeft != nil {
		lines = append(lines, fmt.Sprintf("about %v left in this stage, at the rate so far",
			round(time.Duration(*s.SecondsLeft*float64(time.Second)))))
	}
	if u := s.LateUntil; u != nil && time.Until(*u) > 0 {
		lines = append(lines, fmt.Sprintf("late requests of lost workers may arrive until %s (%v); comparisons and the end "+
			"of the job wait until then", u.Local().Format(time.TimeOnly), round(time.Until(*u))))
	}
	for _, w := range s.Working {
		silent := ""
		if w.Silent > 0 {
			silent = fmt.Sprintf(", silent for %v: the next worker without a task takes it over",
				round(time.Duration(w.Silent*float64(time.Second))))
		}
		lines = append(lines, fmt.Sprintf("%-7s task %d: %s%s", w.Stage, w.Index, printable(w.By), silent))
	}
	for _, f := range s.Failures {
		lines = append(lines, fmt.Sprintf("%-7s task %d failed %s: %s (%s)", f.Stage, f.Index,
			f.At.Local().Format("2006-01-02 15:04:05"), printable(f.Message), printable(f.By)))
	}
	return lines
}

func serveJob(ctx context.Context, c *call, w *scaleout.Watcher, address string) error {
	mux := http.NewServeMux()
	answer := func(kind string, write func(*bytes.Buffer, *scaleout.Status) error) http.HandlerFunc {
		return func(to http.ResponseWriter, r *http.Request) {
			var text bytes.Buffer
			s, err := w.Status(r.Context())
			if err == nil {
				err = write(&text, s)
			}
			if err != nil {
				http.Error(to, err.Error(), http.StatusServiceUnavailable)
				return
			}
			to.Header().Set("Content-Type", kind)
			to.Header().Set("Cache-Control", "no-store")
			_, _ = to.Write(text.Bytes()) // fails if the client is gone
		}
	}
	mux.HandleFunc("GET /status", answer("application/json", func(b *bytes.Buffer, s *scaleout.Status) error {
		e := json.NewEncoder(b)
		e.SetIndent("", "  ")
		return e.Encode(s)
	}))
	mux.HandleFunc("GET /metrics", answer("text/plain; version=0.0.4",
		func(b *bytes.Buffer, s *scaleout.Status) error { return s.Metrics(b) }))
	l, err := net.Listen("tcp", address)
	if err != nil {
		return usagef("--listen %s: %v", address, err)
	}
	c.say.Line("status at http://%s/status and /metrics; Ctrl-C ends", l.Addr())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
