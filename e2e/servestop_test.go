package e2e

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// TestSIGTERMLetsARequestInFlightFinish holds a request back by its body: the server has read the headers when it asks
// for more, and the body is sent after the signal has closed the port.
func TestSIGTERMLetsARequestInFlightFinish(t *testing.T) {
	p := startServe(t)
	config := tablestore.NewDefaultTableStoreConfig()
	config.RetryTimes = 0
	config.Transport = &inParts{between: func() {
		must(t, p.cmd.Process.Signal(syscall.SIGTERM))
		for { // until the port refuses: the server stops
			c, err := net.Dial("tcp", strings.TrimPrefix(p.URL, "http://"))
			if err != nil {
				return
			}
			c.Close()
		}
	}}
	client := tablestore.NewClientWithConfig(p.URL, p.Instance, p.AccessKeyID, p.AccessKeySecret, "", config)
	if _, err := client.DescribeTable(&tablestore.DescribeTableRequest{TableName: "no_such_table"}); codeOf(err) != "OTSObjectNotExist" {
		t.Error(err)
	}
	p.stopped = true
	p.cmd.Wait() // its error is the exit code below
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d, want 0; stderr:\n%s", code, p.stderr.String())
	}
}

// inParts sends the headers, waits until the server asks for the body, and sends it after between.
type inParts struct{ between func() }

func (p *inParts) RoundTrip(r *http.Request) (*http.Response, error) {
	address, err := url.Parse("http://" + r.URL.Host)
	if err != nil {
		return nil, err
	}
	c, err := net.Dial("tcp", address.Host)
	if err != nil {
		return nil, err
	}
	c.SetDeadline(time.Now().Add(processTimeout))
	var text bytes.Buffer
	r.Header.Set("Expect", "100-continue")
	if err := r.Write(&text); err != nil {
		return nil, err
	}
	head, body, _ := bytes.Cut(text.Bytes(), []byte("\r\n\r\n"))
	if _, err := c.Write(append(head, "\r\n\r\n"...)); err != nil {
		return nil, err
	}
	reader := bufio.NewReader(c)
	if _, err := http.ReadResponse(reader, r); err != nil { // 100 Continue
		return nil, err
	}
	p.between()
	if _, err := c.Write(body); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(reader, r)
	if err != nil {
		return nil, err
	}
	whole, err := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(bytes.NewReader(whole))
	c.Close()
	return resp, err
}
