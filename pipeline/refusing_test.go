package pipeline

import (
	"bytes"
	"io"
	"net/http"
	"sync/atomic"

	"google.golang.org/protobuf/encoding/protowire"

	"tsimport/engine/enginetest"
)

// refusing is a service that refuses, as a whole, every request whose body holds a word.
type refusing struct {
	base  http.RoundTripper
	word  []byte
	count *atomic.Int64
}

func (r refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	req = req.Clone(req.Context())
	req.Body = io.NopCloser(bytes.NewReader(body))
	if req.URL.Path != "/BatchWriteRow" || !bytes.Contains(body, r.word) {
		return r.base.RoundTrip(req)
	}
	r.count.Add(1)
	var answer []byte
	answer = protowire.AppendTag(answer, 1, protowire.BytesType)
	answer = protowire.AppendString(answer, "OTSParameterInvalid")
	answer = protowire.AppendTag(answer, 2, protowire.BytesType)
	answer = protowire.AppendString(answer, "A row is bad.")
	return enginetest.Sign(&http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{}, Request: req}, req.URL.Path, answer), nil
}
