package server

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// Bodies below /_engine, which may be longer, come out of the budget of all bodies too.
func TestBodiesOfTheAdminAPIShareTheBudget(t *testing.T) {
	s := open(t, Options{})
	addr := onPort(t, s, Limits{BodyBytes: oneBody + oneBody/2, BodyWait: 20 * time.Millisecond})
	body := strings.Repeat(" ", oneBody)
	request := fmt.Sprintf("PUT /_engine/simulation HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	first := begin(t, addr, request)
	full := onWire(t, s, "BatchWriteRow", make([]byte, oneBody))
	for what, text := range map[string]string{"of the protocol": full, "below /_engine": request} {
		c := dial(t, addr)
		io.WriteString(c, text)
		if got := status(t, c); !strings.Contains(got, "503") {
			t.Errorf("a second body %s: %s, want 503", what, got)
		}
	}
	io.WriteString(first, request[len(request)-1:])
	if got := status(t, first); strings.Contains(got, "503") {
		t.Errorf("the first request: %s", got)
	}
}
