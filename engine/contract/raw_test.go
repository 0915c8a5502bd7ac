package contract

import (
	"bytes"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"encoding/base64"
	endian "encoding/binary" // the name is taken by the path of tsimport
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// message is a protobuf message in the making, for requests that the SDK does not send. Its methods leave it as it was.
type message []byte

func (m message) int(field int, v int64) message {
	m = endian.AppendUvarint(slices.Clip(m), uint64(field)<<3)
	return endian.AppendUvarint(m, uint64(v))
}

func (m message) bytes(field int, b []byte) message {
	m = endian.AppendUvarint(slices.Clip(m), uint64(field)<<3|2)
	m = endian.AppendUvarint(m, uint64(len(b)))
	return append(m, b...)
}

func (m message) text(field int, s string) message { return m.bytes(field, []byte(s)) }

// parsed is a message that was answered: of each field its values, those of numbers as varints.
type parsed map[protowire.Number][][]byte

func parse(b []byte) (parsed, error) {
	p := parsed{}
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return p, protowire.ParseError(n)
		}
		value := b[n:]
		if n = protowire.ConsumeFieldValue(field, kind, value); n < 0 {
			return p, protowire.ParseError(n)
		}
		b, value = value[n:], value[:n]
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(value)
		}
		p[field] = append(p[field], value)
	}
	return p, nil
}

func parseOf(t testing.TB, b []byte) parsed {
	t.Helper()
	p, err := parse(b)
	must(t, err)
	return p
}

// bytes is the last value of a field, number the same as a number: nil and 0 if there is none.
func (p parsed) bytes(field protowire.Number) []byte {
	if n := len(p[field]); n > 0 {
		return p[field][n-1]
	}
	return nil
}

func (p parsed) number(field protowire.Number) int64 {
	v, _ := protowire.ConsumeVarint(p.bytes(field))
	return int64(v)
}

// rawRequest is a request as it goes over the wire. Its zero value, but for the operation, is one the service accepts.
type rawRequest struct {
	operation string
	method    string // "" is POST
	body      []byte
	keyID     string // "" is the service's
	secret    string
	instance  string
	change    func(http.Header) // before signing
	after     func(http.Header) // after signing
}

// answer is what came back.
type answer struct {
	refusal
	header http.Header
	body   []byte
}

// send signs the request by hand and sends it.
func (s *service) send(t testing.TB, r rawRequest) *answer {
	t.Helper()
	if r.method == "" {
		r.method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(t.Context(), r.method, s.endpoint+"/"+r.operation, bytes.NewReader(r.body))
	must(t, err)
	sum := md5.Sum(r.body)
	req.Header.Set("x-ots-date", time.Now().UTC().Format("2006-01-02T15:04:05.000Z"))
	req.Header.Set("x-ots-apiversion", "2015-12-31")
	req.Header.Set("x-ots-accesskeyid", or(r.keyID, s.keyID))
	req.Header.Set("x-ots-instancename", or(r.instance, s.instance))
	req.Header.Set("x-ots-contentmd5", base64.StdEncoding.EncodeToString(sum[:]))
	if r.change != nil {
		r.change(req.Header)
	}
	req.Header.Set("x-ots-signature", sign(or(r.secret, s.secret), "/"+r.operation+"\nPOST\n\n"+canonical(req.Header)))
	if r.after != nil {
		r.after(req.Header)
	}
	resp, err := (&http.Client{Transport: s.transport}).Do(req)
	must(t, err)
	defer resp.Body.Close()
	a := &answer{header: resp.Header}
	a.body, err = io.ReadAll(resp.Body)
	must(t, err)
	if resp.StatusCode != http.StatusOK {
		p, err := parse(a.body)
		if err != nil || len(p) > len(p[1])+len(p[2]) {
			t.Errorf("body of status %d is no error: %q, %v", resp.StatusCode, a.body, err)
		}
		a.refusal = refusal{resp.StatusCode, string(p.bytes(1)), string(p.bytes(2))}
	}
	return a
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// canonical is the x-ots headers but for the signature, in lower case, sorted, a line each.
func canonical(h http.Header) string {
	lines := map[string]string{}
	for name, values := range h {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-ots-") && name != "x-ots-signature" {
			lines[name] = strings.TrimSpace(values[0])
		}
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		b.WriteString(name + ":" + lines[name] + "\n")
	}
	return b.String()
}

func sign(secret, text string) string {
	mac := hmac.New(sha1.New, []byte(secret))
	io.WriteString(mac, text)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func (a *answer) check(t testing.TB, want refusal) {
	t.Helper()
	if !want.matches(a.refusal) {
		t.Errorf("got  %+v\nwant %+v", a.refusal, want)
	}
}

// checkSigned fails the test unless the answer carries what the strictest SDKs demand: its MD5, an id, a date, a
// content type, and the service's signature.
func (a *answer) checkSigned(t testing.TB, s *service, operation string) {
	t.Helper()
	sum := md5.Sum(a.body)
	if got, want := a.header.Get("x-ots-contentmd5"), base64.StdEncoding.EncodeToString(sum[:]); got != want {
		t.Errorf("MD5 of the answer: got %q, want %q", got, want)
	}
	if got, want := a.header.Get("Authorization"), "OTS "+s.keyID+":"+sign(s.secret, canonical(a.header)+"/"+operation); got != want {
		t.Errorf("signature of the answer: got %q, want %q", got, want)
	}
	if at, err := time.Parse("2006-01-02T15:04:05.999999Z", a.header.Get("x-ots-date")); err != nil || time.Since(at).Abs() > 15*time.Minute {
		t.Errorf("date of the answer: %v, %v", at, err)
	}
	if a.header.Get("x-ots-requestid") == "" || a.header.Get("x-ots-contenttype") == "" {
		t.Errorf("headers of the answer: %v", a.header)
	}
}
