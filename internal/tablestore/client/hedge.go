package client

import (
	"net/http"
	"time"
)

// repeatable are the small requests about tables that a load waits for before its first row. A service that was silent for some seconds
// answers the next one at once, and the one before not at all, so they are sent again beside those that nobody answers.
var repeatable = map[string]bool{"/DescribeTable": true, "/ListTable": true, "/ComputeSplitPointsBySize": true}

const (
	hedgeAfter = 2 * time.Second
	mostHedges = 16 // requests that nobody has answered; the first one times out before, unless its time-out is long
)

// hedged sends a request, and sends it again each time that there is no answer for hedgeAfter. The first answer counts, or the first error.
func (t *transport) hedged(r *http.Request) (*http.Response, error) {
	type answer struct {
		res *http.Response
		err error
	}
	answers := make(chan answer, mostHedges)
	again := time.NewTimer(hedgeAfter)
	defer again.Stop()
	for sent := 0; ; {
		if sent < mostHedges {
			sent++
			one := r.Clone(r.Context())
			var err error
			if one.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
			go func() {
				res, err := t.once(one)
				answers <- answer{res, err}
			}()
		}
		select {
		case a := <-answers:
			return a.res, a.err
		case <-again.C:
			again.Reset(hedgeAfter)
		}
	}
}
