package client

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
)

// An answer that something on the way has kept carries a right checksum and a right signature: only its id tells.
func TestAnAnswerThatComesTwiceIsOfUnknownOutcome(t *testing.T) {
	traffic := new(Traffic)
	answer := func(id string) error {
		header := http.Header{}
		if id != "" {
			header.Set(headerRequestID, id)
		}
		return traffic.check("/BatchWriteRow", nil, true, &http.Response{StatusCode: http.StatusOK, Header: header}, nil, false)
	}
	for i := range 1000 {
		if err := answer(fmt.Sprint("request ", i)); err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
	}
	if err := answer("request 999"); !errors.Is(err, errReplayed) || !damaged(err) {
		t.Errorf("the same answer again: %v", err)
	}
	for range 2 {
		if err := answer(""); err != nil {
			t.Errorf("an answer without an id: %v", err)
		}
	}
}
