package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"example.com/tsimport/internal/tablestore/client"
)

func self() string {
	name, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return name
}

// command returns a command that ends with ctx. It gets the variables of env instead of inherited Tablestore settings.
func command(ctx context.Context, env []string, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = 5 * time.Second
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "TABLESTORE_") && !strings.HasPrefix(v, "ALIBABA_CLOUD_") &&
			!strings.HasPrefix(v, "BENCH_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// server is a process that serves until it is closed.
type server struct {
	env     []string // for clients
	says    map[string]string
	cmd     *exec.Cmd
	ask     io.Writer
	answers *bufio.Reader
	stderr  bytes.Buffer
}

// serve starts a server with these arguments, and waits for the line NAME=VALUE … that it prints when it is ready.
func serve(ctx context.Context, env []string, args ...string) (s *server, err error) {
	s = &server{says: map[string]string{}, cmd: command(ctx, env, self(), args...)}
	s.cmd.Stderr = &s.stderr
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		s.ask, err = s.cmd.StdinPipe()
	}
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", args[0], err)
	}
	s.answers = bufio.NewReader(out)
	line, err := s.answers.ReadString('\n')
	for f := range strings.FieldsSeq(line) {
		name, value, _ := strings.Cut(f, "=")
		s.says[name] = value
	}
	if err != nil { // the process exits and reports why
		_ = s.cmd.Wait()
	}
	if err != nil || s.says["url"] == "" {
		s.close()
		if s.cmd.ProcessState.ExitCode() == 2 {
			return nil, refused(s.stderr.String())
		}
		return nil, fmt.Errorf("start %s: it printed no ready line: %s", args[0], client.OneLine(s.stderr.String()))
	}
	for variable, name := range map[string]string{"ENDPOINT": "url", "INSTANCE": "instance",
		"ACCESS_KEY_ID": "access_key_id", "ACCESS_KEY_SECRET": "access_key_secret"} {
		s.env = append(s.env, "TABLESTORE_"+variable+"="+s.says[name])
	}
	return s, nil
}

// close kills the server. It may be called twice.
func (s *server) close() {
	_ = s.cmd.Process.Kill() // it may have ended with ctx
	_ = s.cmd.Wait()
}

type ran struct {
	stdout     []byte
	cpuSeconds float64
	seconds    float64
	peakRSS    int64
}

func finish(cmd *exec.Cmd) (r ran, err error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	err = cmd.Run()
	r = ran{stdout: stdout.Bytes(), seconds: time.Since(start).Seconds()}
	if p := cmd.ProcessState; p != nil {
		r.cpuSeconds, r.peakRSS = (p.UserTime() + p.SystemTime()).Seconds(), peakRSS(p)
		if p.ExitCode() == 2 && cmd.Path == self() {
			return r, refused(stderr.String())
		}
	}
	if err != nil {
		err = fmt.Errorf("%w: %s", err, client.OneLine(stderr.String()))
	}
	return r, err
}
