package client

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/klauspost/compress/zlib"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
)

// signatures maps kinds of signatures to functions that change the header of a correctly signed response.
var signatures = map[string]func(path string, h http.Header){
	"right":   func(string, http.Header) {},
	"missing": func(_ string, h http.Header) { h.Del(headerAuthorization) },
	"empty":   func(_ string, h http.Header) { h.Set(headerAuthorization, "") },
	"wrong": func(_ string, h http.Header) {
		h.Set(headerAuthorization, "OTS "+server.DefaultAccessKeyID+":d3Jvbmc=")
	},
	"of another secret": func(path string, h http.Header) {
		h.Set(headerAuthorization, "OTS "+server.DefaultAccessKeyID+":"+wire.SignResponse("other", path, h))
	},
	"of another operation": func(_ string, h http.Header) {
		h.Set(headerAuthorization, "OTS "+server.DefaultAccessKeyID+":"+wire.SignResponse("secret", "/Other", h))
	},
	"of another body": func(path string, h http.Header) {
		other := h.Clone()
		other.Set(headerMD5, base64.StdEncoding.EncodeToString(make([]byte, md5.Size)))
		h.Set(headerAuthorization, "OTS "+server.DefaultAccessKeyID+":"+wire.SignResponse("secret", path, other))
	},
	"of no body": func(path string, h http.Header) {
		h.Del(headerMD5)
		h.Set(headerAuthorization, "OTS "+server.DefaultAccessKeyID+":"+wire.SignResponse("secret", path, h))
	},
}

type claiming struct {
	status  int
	code    string
	sign    func(path string, h http.Header)
	answers int
	renewed int // number of requests for newer keys
	endless bool
	read    int // bytes read of an endless response
}

func (a *claiming) Read(p []byte) (int, error) {
	a.read += len(p)
	return len(p), nil
}

type renewing struct {
	common.CredentialsProvider
	of *claiming
}

func (r renewing) Refresh() { r.of.renewed++ }

func (a *claiming) RoundTrip(r *http.Request) (*http.Response, error) {
	a.answers++
	var body string
	if a.code != "" {
		body = string(wire.AppendError(nil, &wire.Error{Code: a.code, Message: "no"}))
	}
	sum := md5.Sum([]byte(body))
	h := http.Header{}
	h.Set(headerMD5, base64.StdEncoding.EncodeToString(sum[:]))
	h.Set(headerRequestID, fmt.Sprint(a.answers))
	h.Set(headerDate, "2024-01-01T00:00:00.000Z")
	h.Set("X-Ots-Contenttype", "protocol buffer")
	h.Set(headerAuthorization, "OTS "+server.DefaultAccessKeyID+":"+wire.SignResponse("secret", r.URL.Path, h))
	a.sign(r.URL.Path, h)
	if r.Body != nil {
		r.Body.Close()
	}
	res := &http.Response{StatusCode: a.status, Header: h, ContentLength: int64(len(body)),
		Body: io.NopCloser(strings.NewReader(body)), Request: r}
	if a.endless {
		res.ContentLength, res.Body = -1, io.NopCloser(a)
	}
	return res, nil
}

func TestResponseSizeLimitDependsOnKind(t *testing.T) {
	for op, rows := range map[string]int{"BatchWriteRow": maxWritten, "BulkImport": maxWritten, "GetRange": maxAnswer} {
		for status, most := range map[int]int{200: rows, 299: rows, 300: maxRefusal, 500: maxRefusal} {
			a := &claiming{status: status, sign: signatures["right"], endless: true}
			for way, send := range ways(t, a, false) {
				a.read = 0
				err := send(op)
				conformance.True(t, err != nil && a.read > most && a.read <= 2*most, "%s, %s: %d, %v", op, way, a.read, err)
			}
		}
	}
}

func ways(t *testing.T, a *claiming, accept bool) map[string]func(operation string) error {
	target := Target{Endpoint: "http://made-up", Instance: "i", Transport: a, Credentials: renewing{keys("secret"), a},
		AcceptUnsigned: accept}
	s := sender(t, t.Context(), target)
	asked := &signedWith{CredentialsProvider: target.Credentials}
	asked.GetCredentials()
	sdk := &transport{base: a, run: t.Context(), timeout: time.Minute, keys: asked, traffic: new(Traffic), accept: accept,
		access: access{credentials: target.Credentials}}
	return map[string]func(string) error{
		"our connection": func(operation string) error {
			_, err := s.Post(operation, text("x"))
			return err
		},
		"the SDK's": func(operation string) error {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://made-up/"+operation, http.NoBody)
			must(t, err)
			r.Header.Set(headerAccessKeyID, server.DefaultAccessKeyID)
			res, err := sdk.RoundTrip(r)
			if err == nil && res.StatusCode != http.StatusOK {
				body, _ := io.ReadAll(res.Body)
				return refusal(res.StatusCode, body, "")
			}
			return err
		},
	}
}

var operations = strings.Fields("ListTable CreateTable DescribeTable UpdateTable DeleteTable " +
	"ComputeSplitPointsBySize GetRow GetRange BatchGetRow " +
	"PutRow UpdateRow DeleteRow BatchWriteRow BulkImport BulkExport DropIndex DeleteDefinedColumn AddDefinedColumn")

var statuses = []struct {
	status int
	code   string
	class  Class // class of the error if the response is signed
}{
	{200, "", 0}, {300, "OTSParameterInvalid", Content}, {403, authFailed, Fatal},
	{403, "OTSNotEnoughCapacityUnit", Throttled},
	{403, "OTSNoPermissionAccess", Fatal}, {403, "OTSConditionCheckFail", Permanent}, {404, "OTSObjectNotExist", Fatal},
	{409, "OTSObjectAlreadyExist", Permanent}, {400, "OTSParameterInvalid", Content}, {400, authFailed, Fatal},
	{413, "OTSRequestBodyTooLarge", Content}, {500, "OTSInternalServerError", Ambiguous},
	{503, "OTSPartitionUnavailable", Unavailable},
}

// No row may be lost, duplicated or rejected because of a response that an intermediary could have forged.
func TestOnlySignedResponsesDetermineOutcome(t *testing.T) {
	for name, sign := range signatures {
		for _, st := range statuses {
			for _, operation := range operations {
				for later, when := range []string{"first", "later"} {
					a := &claiming{}
					for way, send := range ways(t, a, false) {
						if a.status, a.code, a.sign = 200, "", signatures["right"]; later == 1 {
							must(t, send("ListTable"))
						}
						a.status, a.code, a.sign = st.status, st.code, sign
						err := send(operation)
						at := fmt.Sprintf("%s, HTTP %d %s, signature %s, %s, %s", operation, st.status, st.code, name, when, way)
						if name == "right" {
							conformance.True(t, (err == nil) == (st.code == "") && (err == nil || Classify(err) == st.class) &&
								!Unsettled(err), "%s: %v", at, err)
							continue
						}
						refusesKeys := st.status == 403 && st.code == authFailed
						want := Ambiguous
						if refusesKeys && later == 0 {
							want = Fatal
						}
						conformance.True(t, Unsettled(err) && (Classify(err) == want || Classify(err) == Unrecognized), "%s: %v", at, err)
						conformance.True(t, Refused(err) == refusesKeys && !IsNoTable(err) && codeOf(err) != "OTSObjectAlreadyExist" &&
							codeOf(err) != "OTSConditionCheckFail",
							"%s is believed: %v", at, err)
						conformance.True(t, st.code != "" || strings.Contains(Describe(err), UnsignedVariable) ||
							strings.Contains(Describe(err), "does not match"),
							"%s: %s", at, Describe(err))
					}
				}
			}
		}
	}
}

func TestUnsignedKeyRefusalsEndAfterTwoMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &claiming{status: 200, sign: signatures["right"]}
		for way, send := range ways(t, a, false) {
			refuse := func(want Class) {
				t.Helper()
				a.status, a.code, a.sign, a.renewed = 403, authFailed, signatures["missing"], 0
				err := send("BatchWriteRow")
				conformance.True(t, Classify(err) == want && Unsettled(err) && Refused(err) && NotServing(err) && a.renewed != 0,
					"%s: class %d, %v", way, Classify(err), err)
			}
			allow := func() {
				a.status, a.code, a.sign = 200, "", signatures["right"]
				conformance.Equal(t, send("BatchWriteRow"), nil, "error")
			}
			allow()
			refuse(Ambiguous)
			time.Sleep(Patience - time.Second)
			refuse(Ambiguous)
			allow() // restarts the two minutes
			time.Sleep(2 * time.Second)
			refuse(Ambiguous)
			time.Sleep(Patience)
			refuse(Fatal)
		}
	})
}

func TestDestructiveOperationsNeedSignedResponses(t *testing.T) {
	destroy := strings.Fields("DeleteTable UpdateTable DeleteRow DropIndex DeleteDefinedColumn")
	for _, operation := range operations {
		a, destroys := &claiming{}, slices.Contains(destroy, operation)
		for way, send := range ways(t, a, true) {
			a.status, a.code, a.sign = 200, "", signatures["missing"]
			err := send(operation)
			conformance.True(t, (err != nil) == destroys && (err == nil || strings.Contains(Describe(err), "does not apply")),
				"%s, %s: %v", operation, way, err)
			a.sign = signatures["wrong"]
			err = send(operation)
			conformance.True(t, Unsettled(err), "%s with a wrong signature, %s: %v", operation, way, err)
			a.status, a.code = 403, authFailed // signed with another secret
			err = send(operation)
			conformance.True(t, Denied(err) && Unsettled(err) == destroys, "%s with the wrong keys, %s: %v", operation, way, err)
		}
	}
}

// The signature does not cover the status, so an intermediary could turn a refusal into a success.
func TestRefusalWithSuccessStatusIsDetected(t *testing.T) {
	for _, operation := range []string{"DeleteTable", "UpdateTable", "CreateTable"} {
		a := &claiming{status: 200, code: "OTSObjectNotExist", sign: signatures["right"]}
		for way, send := range ways(t, a, false) {
			err := send(operation)
			conformance.True(t, errors.Is(err, errStatus) && Classify(err) == Ambiguous, "%s, %s: %v", operation, way, err)
		}
	}
}

func TestUnsignedResponsesAreAcceptedOnlyOnRequest(t *testing.T) {
	for value, want := range map[string]string{"": "false <nil>", "accept": "true <nil>",
		"yes": "false " + UnsignedVariable + "=yes: want accept, or nothing"} {
		t.Setenv(UnsignedVariable, value)
		accept, err := AcceptUnsigned()
		conformance.Equal(t, fmt.Sprint(accept, " ", err), want, "%q", value)
	}
}

// seenBody is a received request: its headers for compression and size, and its body.
type seenBody struct {
	kind, size string
	sent       []byte
}

func (b *seenBody) plain(t *testing.T) string {
	t.Helper()
	if b.kind == "" {
		return string(b.sent)
	}
	text, err := io.ReadAll(conformance.Try(zlib.NewReader(bytes.NewReader(b.sent))).Must(t))
	conformance.True(t, err == nil && strconv.Itoa(len(text)) == b.size && b.kind == "deflate",
		"%d bytes, said to be %s of %q; %v", len(text), b.size, b.kind, err)
	return string(text)
}

// noting returns a transport that records bodies and responds with the result of answer; nil means success.
func noting(seen *[]seenBody, answer func(b *seenBody) *http.Response) roundTrip {
	var mu sync.Mutex
	return func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		_ = r.Body.Close()
		b := seenBody{r.Header.Get("x-ots-request-compress-type"), r.Header.Get("x-ots-request-compress-size"), body}
		mu.Lock()
		defer mu.Unlock()
		*seen = append(*seen, b)
		if answer != nil {
			if res := answer(&b); res != nil {
				return res, nil
			}
		}
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}, nil
	}
}

func refusing(status int, code string) *http.Response {
	message := append([]byte{0x0a, byte(len(code))}, code...)
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(message))}
}

// compressible returns a compressible body of about size bytes. It is different for each i.
func compressible(i, size int) string {
	return fmt.Sprintf("%08d%s", i, bytes.Repeat([]byte("abcd "), size/5))
}

func TestCompressedBodiesRoundTrip(t *testing.T) {
	var seen []seenBody
	s := sender(t, t.Context(), Target{Endpoint: "http://x", Instance: "i", AcceptUnsigned: true, Credentials: keys("s"),
		Compress: CompressOn, Transport: noting(&seen, nil)})
	noise := make([]byte, 100_000)
	rnd := rand.New(rand.NewPCG(1, 1))
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	var want []string
	for i, size := range []int{0, 1000, 1 << 20, 2000, 4 << 20, 70_000, 100} {
		want = append(want, compressible(i, size), string(noise))
	}
	for _, body := range want {
		must(t, conformance.ErrorOf(s.Post("BatchWriteRow", text(body))))
	}
	for i, b := range seen {
		got := b.plain(t)
		conformance.Equal(t, got, want[i], "body %d is another: %d bytes, want %d", i, len(got), len(want[i]))
		conformance.Equal(t, i%2 == 0 && len(want[i]) >= leastCompressed, (b.kind != ""),
			"body %d of %d bytes: compressed %q", i, len(want[i]), b.kind)
	}
}

func TestCompressionIsOffByDefault(t *testing.T) {
	for _, mode := range []string{"", CompressOff} {
		var seen []seenBody
		s := sender(t, t.Context(), Target{Endpoint: "http://x", Instance: "i", AcceptUnsigned: true, Credentials: keys("s"),
			Compress: mode, Transport: noting(&seen, nil)})
		_, err := s.Post("BatchWriteRow", text(compressible(0, 10_000)))
		conformance.True(t, err == nil && seen[0].kind == "", "%q: %q, %v", mode, seen[0].kind, err)
	}
	_, err := Connect(t.Context(), Target{Endpoint: "http://x", Instance: "i", AcceptUnsigned: true, Compress: "zip"}, nil)
	conformance.True(t, err != nil, "an unknown mode is taken")
}

// A service without compression must not cause rejects. The sender does not repeat a request that may have been
// applied, but sends the next one without compression.
func TestRefusedCompressionIsNotARejectedRow(t *testing.T) {
	page := func() *http.Response {
		return &http.Response{StatusCode: 400, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("<html>400"))}
	}
	refused := func(code string) func() *http.Response { return func() *http.Response { return refusing(400, code) } }
	for name, tt := range map[string]struct {
		refusal func() *http.Response
		taken   int    // compressed requests accepted before the refusal
		sent    string // C for a compressed request, p for a plain one
		errs    string // o for an open outcome, x for another error, - for none
	}{
		"parameter":           {refused("OTSParameterInvalid"), 0, "Cppp", "---"},
		"keys":                {refused("OTSAuthFailed"), 0, "Cppp", "---"},
		"operation":           {refused("OTSUnsupportedOperation"), 0, "Cppp", "---"},
		"an open outcome":     {page, 0, "Cpp", "o--"},
		"after one was taken": {refused("OTSParameterInvalid"), 1, "CCC", "-xx"},
	} {
		var seen []seenBody
		target := unsignedAt("http://x")
		target.Compress, target.Transport = CompressOn, noting(&seen, func(b *seenBody) *http.Response {
			if b.kind != "" && len(seen) > tt.taken {
				return tt.refusal()
			}
			return nil
		})
		s := sender(t, t.Context(), target)
		sent, errs := "", ""
		for i := range 3 {
			_, err := s.Post("BatchWriteRow", text(compressible(i, 10_000)))
			switch {
			case err == nil:
				errs += "-"
			case Classify(err).Open():
				errs += "o"
			default:
				errs += "x"
			}
		}
		for i, b := range seen {
			sent += map[bool]string{true: "C", false: "p"}[b.kind != ""]
			body := compressible(i+3-len(seen), 10_000)
			conformance.True(t, i == 0 || b.plain(t) == body, "%s: request %d has another body", name, i)
		}
		conformance.True(t, sent == tt.sent && errs == tt.errs && seen[0].plain(t) == compressible(0, 10_000),
			"%s: sent %s, errors %s; want %s, %s", name, sent, errs, tt.sent, tt.errs)
	}
}
