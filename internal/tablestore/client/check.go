package client

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"hash/maphash"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"google.golang.org/protobuf/encoding/protowire"

	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// Errors of responses that were damaged in transit. The outcome of the request is unknown.
var (
	errChecksum   = errors.New("the response was altered in transit: it does not match its checksum (x-ots-contentmd5)")
	errNoChecksum = errors.New("the response was altered in transit: its checksum (x-ots-contentmd5) is missing")
	errStatus     = errors.New("the response was altered in transit: its status is a success, but its body is a refusal")
	errReplayed   = errors.New("the response belongs to an earlier request (x-ots-requestid): something between here " +
		"and the service repeats responses")
)

// damaged reports whether a response was changed in transit and came from Tablestore or an endpoint known to be one.
func damaged(err error) bool {
	u := new(unsigned)
	return errors.Is(err, errChecksum) || errors.Is(err, errNoChecksum) || errors.Is(err, errStatus) ||
		errors.Is(err, errReplayed) || errors.As(err, &u) && u.proven
}

// receive appends a response's body to dst and checks the response, for both transports. keys signed the request; nil
// means unknown. A redirect becomes an error without the Location: a signed request must not be sent to another host.
func (t *Traffic) receive(dst []byte, path string, keys common.Credentials, accept bool, res *http.Response,
	sameMemory bool) ([]byte, error) {
	defer res.Body.Close()
	body, err := readAll(dst, res.Body, res.ContentLength, mostOf(path, res.StatusCode))
	if err != nil {
		return body, fmt.Errorf("read response: %w", err)
	}
	if err := t.check(path, keys, accept, res, body, sameMemory); err != nil {
		return body, err
	}
	if to := res.Header.Get(headerLocation); to != "" && res.StatusCode >= 300 && res.StatusCode < 400 {
		body = append(body[:0], "moved to "+withoutSecrets(to)...)
		res.Header.Del(headerLocation)
	}
	return body, nil
}

func withoutSecrets(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that cannot be read"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// check compares a response with its headers and decides whether it counts. A response within this process has no
// checksum. With AcceptUnsigned, responses without a checksum are accepted and counted until one has a checksum.
func (t *Traffic) check(path string, keys common.Credentials, accept bool, res *http.Response, body []byte,
	sameMemory bool) error {
	success := res.StatusCode >= 200 && res.StatusCode < 300
	sum := res.Header.Get(headerMD5)
	if sum != "" {
		got := md5.Sum(body)
		var text [24]byte
		base64.StdEncoding.Encode(text[:], got[:])
		if string(text[:]) != sum {
			return errChecksum
		}
	}
	given := res.Header.Get(headerAuthorization)
	// A signature covers only headers, so it protects the body only if they include the body's checksum.
	signed := (sum != "" || sameMemory) && given != "" && keys != nil && signs(given, path, keys, res.Header)
	if err := t.rule(path, accept, signed, res, body); err != nil {
		return err
	}
	switch {
	case sum != "" && success:
		t.Checked.Add(1)
	case sum != "" || sameMemory || !success:
	case t.Checked.Load() > 0:
		return errNoChecksum
	default:
		t.Unchecked.Add(1)
	}
	if t.answers.repeats(res.Header.Get(headerRequestID)) {
		t.Replayed.Add(1)
		return errReplayed
	}
	return nil
}

// signs reports whether given, an Authorization header, is a response's signature over path and the protocol's headers.
func signs(given, path string, keys common.Credentials, header http.Header) bool {
	given, scheme := strings.CutPrefix(given, "OTS ")
	given, id := strings.CutPrefix(given, keys.GetAccessKeyID())
	given, colon := strings.CutPrefix(given, ":")
	s := signerOf(keys)
	defer signers.Put(s)
	want := s.answer(path, header)
	s.given = append(s.given[:0], given...)
	return scheme && id && colon && hmac.Equal(s.given, want)
}

// signers holds signers for reuse, because making one costs as much as using it.
var signers sync.Pool

// signerOf returns a signer with the secret of keys. The caller puts the signer back into signers.
func signerOf(keys common.Credentials) *signer {
	s, _ := signers.Get().(*signer)
	if secret := keys.GetAccessKeySecret(); s == nil || s.secret != secret {
		s = &signer{secret: secret, mac: hmac.New(sha1.New, []byte(secret))}
	}
	return s
}

type signer struct {
	secret            string
	mac               hash.Hash
	text, sum, base64 []byte
	given             []byte
}

// answer returns the signature of a response, which is valid until the next call.
func (s *signer) answer(path string, header http.Header) []byte {
	s.text = s.text[:0]
	s.appendHeaders(header)
	s.text = append(s.text, path...)
	return s.sign()
}

// request returns the signature of a request, which is valid until the next call.
func (s *signer) request(path string, header http.Header) []byte {
	s.text = append(append(s.text[:0], path...), "\nPOST\n\n"...)
	s.appendHeaders(header)
	return s.sign()
}

// appendHeaders appends the protocol's sorted headers to the text.
func (s *signer) appendHeaders(header http.Header) {
	var names [16]string
	sorted := names[:0]
	for name, values := range header {
		if len(name) > len(headerPrefix) && strings.EqualFold(name[:len(headerPrefix)], headerPrefix) && len(values) > 0 {
			sorted = append(sorted, name)
		}
	}
	slices.SortFunc(sorted, compareFolded)
	for _, name := range sorted {
		for i := range len(name) {
			s.text = append(s.text, lower(name[i]))
		}
		s.text = append(append(append(s.text, ':'), strings.TrimSpace(header[name][0])...), '\n')
	}
}

func (s *signer) sign() []byte {
	s.mac.Reset()
	s.mac.Write(s.text)
	s.sum = s.mac.Sum(s.sum[:0])
	s.base64 = base64.StdEncoding.AppendEncode(s.base64[:0], s.sum)
	return s.base64
}

// headerPrefix is the prefix of the protocol's headers.
const headerPrefix = "x-ots-"

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// compareFolded compares header names in lower case.
func compareFolded(a, b string) int {
	for i := range min(len(a), len(b)) {
		if x, y := lower(a[i]), lower(b[i]); x != y {
			return int(x) - int(y)
		}
	}
	return len(a) - len(b)
}

// recent remembers the IDs of about recentIDs responses, to detect replays. It is safe for concurrent use.
type recent struct {
	seed maphash.Seed
	ids  [recentIDs]atomic.Uint64 // hashes of IDs, indexed by their last bits; newer ones replace older ones
	once sync.Once
}

const recentIDs = 1 << 14 // a power of two

// repeats remembers a response's ID and reports whether it has occurred before. It ignores an empty ID.
func (r *recent) repeats(id string) bool {
	if id == "" {
		return false
	}
	r.once.Do(func() { r.seed = maphash.MakeSeed() })
	hash := max(maphash.String(r.seed, id), 1) // 0 means an empty slot
	return r.ids[hash%recentIDs].Swap(hash) == hash
}

// rowsAt maps operations to the fields of their responses that hold PlainBuffer rows, as paths of field numbers.
var rowsAt = map[string][][]protowire.Number{
	"/GetRow":                   {{2}},
	"/PutRow":                   {{2}},
	"/UpdateRow":                {{2}},
	"/DeleteRow":                {{2}},
	"/GetRange":                 {{2}, {3}},
	"/BatchGetRow":              {{1, 2, 4}},
	"/DescribeTable":            {{shardSplits}},
	"/ComputeSplitPointsBySize": {{3}},
}

// checkRows checks the checksums of the rows in a successful response. The SDK does not check them.
func checkRows(path string, body []byte) error {
	for _, fields := range rowsAt[path] {
		if err := checkRowsAt(body, fields); err != nil {
			return fmt.Errorf("malformed response: %w", err)
		}
	}
	return nil
}

func checkRowsAt(message []byte, fields []protowire.Number) error {
	return eachField(message, func(number protowire.Number, kind protowire.Type, value []byte) error {
		if number != fields[0] || kind != protowire.BytesType {
			return nil
		}
		inner, n := protowire.ConsumeBytes(value)
		if n < 0 {
			return protowire.ParseError(n)
		}
		if len(fields) > 1 {
			return checkRowsAt(inner, fields[1:])
		}
		_, err := plainbuffer.CheckRows(inner)
		return err
	})
}
