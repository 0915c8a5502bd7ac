package cost

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"example.com/tsimport/internal/tablestore/client"
)

// nullServer is `tsbench null-server` in a process of its own.
type nullServer struct {
	endpoint string
	ca       string // file of the server's certificate; empty without TLS
	cmd      *exec.Cmd
	ask      io.Writer
	answers  *bufio.Reader
	stderr   bytes.Buffer
}

// Counts are what a null server has counted so far.
type Counts struct {
	Requests    int64 `json:"requests"` // writes
	Rows        int64 `json:"rows"`
	Connections int64 `json:"connections"`
}

// startServer starts a null server, which is killed when ctx ends.
func startServer(ctx context.Context, cfg *Config) (*nullServer, error) {
	s := new(nullServer)
	args := []string{"null-server", "--listen", "127.0.0.1:0", "--latency", cfg.Latency.String(), "--partitions", fmt.Sprint(cfg.Partitions)}
	if cfg.TLS {
		s.ca = filepath.Join(cfg.Dir, "ca.pem")
		args = append(args, "--tls-ca", s.ca)
	}
	if cfg.reads() {
		args = append(args, "--shape", cfg.Shape.Name, "--rows", fmt.Sprint(cfg.Rows))
	}
	s.cmd = exec.CommandContext(ctx, cfg.Binary, args...)
	s.cmd.Env = append(os.Environ(), keyVariables...)
	s.cmd.Stderr = &s.stderr
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		s.ask, err = s.cmd.StdinPipe()
	}
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start null server: %w", err)
	}
	s.answers = bufio.NewReader(out)
	line, err := s.answers.ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "url=")
	if err != nil || !ok {
		s.close()
		return nil, fmt.Errorf("start null server: no ready line: %s", client.OneLine(s.stderr.String()))
	}
	s.endpoint = url
	return s, nil
}

// counts asks the server what it has counted: a line for a line.
func (s *nullServer) counts() (c Counts, err error) {
	var line []byte
	if _, err = io.WriteString(s.ask, "\n"); err == nil {
		if line, err = s.answers.ReadBytes('\n'); err == nil {
			err = json.Unmarshal(line, &c)
		}
	}
	if err != nil {
		return c, fmt.Errorf("ask null server for its counts: %w: %s", err, client.OneLine(s.stderr.String()))
	}
	return c, nil
}

// cpu returns the CPU seconds that the server has used, after close.
func (s *nullServer) cpu() float64 {
	if s.cmd.ProcessState == nil {
		return 0
	}
	return (s.cmd.ProcessState.UserTime() + s.cmd.ProcessState.SystemTime()).Seconds()
}

func (s *nullServer) close() {
	_ = s.cmd.Process.Kill() // it may have ended with ctx
	_ = s.cmd.Wait()
}
