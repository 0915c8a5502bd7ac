package spread

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"

	"example.com/tsimport/internal/tablestore/client"
)

// tableName is the table of every scenario; each has an engine of its own, so that none inherits another's work.
const tableName = "spread"

// engine is `tsimport serve` in a process of its own.
type engine struct {
	client.Target
	id, secret string
	cmd        *exec.Cmd
	stderr     bytes.Buffer
	http       *http.Client
}

// startEngine starts an engine on a new store in dir, with further flags. It is killed when ctx ends.
func startEngine(ctx context.Context, binary, dir string, flags ...string) (*engine, error) {
	e := &engine{http: &http.Client{Transport: &http.Transport{}}} // no proxy: it is on this machine
	e.cmd = command(ctx, binary, dir, append([]string{"serve", "--store", filepath.Join(dir, "store"), "--listen", "127.0.0.1:0", "--sync", "none", "--admin", "--quiet"}, flags...)...)
	e.cmd.Stderr = &e.stderr
	out, err := e.cmd.StdoutPipe()
	if err == nil {
		err = e.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start engine: %w", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		err = e.parse(line)
	}
	if err != nil {
		e.close()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("start engine: no ready line (%w): %s", err, client.OneLine(e.stderr.String()))
	}
	return e, nil
}

// command is a run of tsimport that is killed when ctx ends and leaves its temporary files in dir. The environment's own
// Tablestore is none of its business.
func command(ctx context.Context, binary, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binary, append([]string{Tsimport}, args...)...)
	cmd.WaitDelay = 5 * time.Second
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "TABLESTORE_") && !strings.HasPrefix(v, "ALIBABA_CLOUD_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "TMPDIR="+dir)
	return cmd
}

// parse reads the ready line.
func (e *engine) parse(line string) error {
	says := map[string]string{}
	for _, f := range strings.Fields(line) {
		name, value, _ := strings.Cut(f, "=")
		says[name] = value
	}
	e.Endpoint, e.Instance, e.id, e.secret = says["url"], says["instance"], says["access_key_id"], says["access_key_secret"]
	if e.Endpoint == "" || e.Instance == "" || e.id == "" || e.secret == "" {
		return fmt.Errorf("it says %q", client.OneLine(line))
	}
	e.Credentials = &common.DefaultCredentialsProvider{AccessKeyID: e.id, AccessKeySecret: e.secret}
	return nil
}

// close ends the engine; what it holds is not needed any more. Closing twice does nothing.
func (e *engine) close() {
	if e.cmd != nil {
		e.cmd.Process.Kill() // it may have ended with ctx
		e.cmd.Wait()
	}
	e.http.CloseIdleConnections()
}

// do is one request to the engine's admin API; out may be nil.
func (e *engine) do(ctx context.Context, method, path string, in, out any) (err error) {
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		} else if err != nil {
			err = fmt.Errorf("%s %s on the engine: %w", method, path, err)
		}
	}()
	body := []byte(nil)
	if in != nil {
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, e.Endpoint+"/_engine/"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	res, err := e.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", res.Status, client.OneLine(string(answer)))
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer, out)
}

// tableStats are the engine's counts of the table. Times are Unix milliseconds.
type tableStats struct {
	Requests int64 `json:"requests"`
	counts
	Partitions []partitionStats `json:"partitions"`
}

type counts struct {
	Rows        int64 `json:"rows"`
	Units       int64 `json:"units"`
	Failed      int64 `json:"failed"`
	Throttled   int64 `json:"throttled"`
	Unavailable int64 `json:"unavailable"`
}

// sent is how often a row came in a request, regardless of its outcome.
func (c *counts) sent() int64 { return c.Rows + c.Failed + c.Throttled + c.Unavailable }

type partitionStats struct {
	ID       int             `json:"id"`
	Start    json.RawMessage `json:"start"`
	End      json.RawMessage `json:"end"`
	Capacity float64         `json:"capacity"`
	SinceMS  float64         `json:"since_ms"`
	EndedMS  *float64        `json:"ended_ms"`
	FirstMS  *float64        `json:"first_ms"`
	LastMS   *float64        `json:"last_ms"`
	counts
	Seconds []secondStats `json:"seconds"`
}

type secondStats struct {
	Unix  int64 `json:"t"`
	Units int64 `json:"units"`
}

// stats returns the table's counts and the engine's time.
func (e *engine) stats(ctx context.Context) (*tableStats, float64, error) {
	var all struct {
		NowMS  float64                `json:"now_ms"`
		Tables map[string]*tableStats `json:"tables"`
		// Instance counts what never reached a table.
		Instance struct {
			RefusedRequests int64 `json:"refused_requests"`
			RefusedRows     int64 `json:"refused_rows"`
		} `json:"instance"`
	}
	if err := e.do(ctx, http.MethodGet, "stats", nil, &all); err != nil {
		return nil, 0, err
	}
	if all.Tables[tableName] == nil {
		return nil, 0, fmt.Errorf("the engine has no counts of table %s", tableName)
	}
	t := all.Tables[tableName] // all that was sent was for this one
	t.Requests += all.Instance.RefusedRequests
	t.Throttled += all.Instance.RefusedRows
	return t, all.NowMS, nil
}

// simulate gives the table its capacity, its buckets empty, and forgets the counts so far. It comes immediately before
// the load: buckets fill from now on.
func (e *engine) simulate(ctx context.Context, t *Table, seed uint64) error {
	c := map[string]any{
		"partition_wcu": t.PartitionWCU, "latency_ms": t.LatencyMS, "seed": seed,
		"limiter": t.Limiter, "table_wcu": t.TableWCU, "slow": t.Slow,
	}
	if t.SplitsMS > 0 {
		c["splits"] = map[string]any{
			"start_ms": firstSplit.Milliseconds(), "every_ms": t.SplitsMS,
			"unavailable_ms": splitUnavailable.Milliseconds(), "max_partitions": t.Partitions,
		}
	}
	if err := e.do(ctx, http.MethodPost, "tables/"+tableName+"/simulate", c, nil); err != nil {
		return err
	}
	return e.do(ctx, http.MethodDelete, "stats", nil, nil)
}
