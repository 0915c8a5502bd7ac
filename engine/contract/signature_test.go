package contract

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/conformance"
)

// keyV4 is the key of a day and a region, as base64 text: requests are signed with it, and the answers to them.
func keyV4(secret, day, region string) string {
	key := []byte("aliyun_v4" + secret)
	for _, part := range []string{day, region, "ots", "aliyun_v4_request"} {
		key = sha256Of(key, part)
	}
	return base64.StdEncoding.EncodeToString(key)
}

func sha256Of(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// v4 signs a request of rawRequest again, with key, declaring day and region.
func v4(operation, key, day, region string) func(http.Header) {
	return func(h http.Header) {
		h.Del("x-ots-signature")
		h.Set("x-ots-signdate", day)
		h.Set("x-ots-signregion", region)
		sum := sha256Of([]byte(key), "/"+operation+"\nPOST\n\n"+canonical(h)+"ots")
		h.Set("x-ots-signaturev4", base64.StdEncoding.EncodeToString(sum))
	}
}

func TestSignatureV4IsProvenAndAnsweredWithItsOwnKey(t *testing.T) {
	s := proving(t, "1.6.1", "1.6.2")
	if s.real {
		t.Skip("the region of the instance is not known")
	}
	const op, region = "DescribeTable", "cn-hangzhou"
	today := time.Now().UTC().Format("20060102")
	key := keyV4(s.secret, today, region)
	body := message{}.text(1, "no_such_table")
	for name, v := range map[string]struct {
		after func(http.Header)
		want  refusal
		own   bool // the answer is signed with the key of the day
	}{
		"rightly signed":           {v4(op, key, today, region), noSuchTable, true},
		"another region":           {v4(op, key, today, "cn-beijing"), authFailed("Signature mismatch."), false},
		"another day":              {v4(op, key, "20240102", region), authFailed("Signature mismatch."), false},
		"another secret":           {v4(op, keyV4("wrong", today, region), today, region), authFailed("Signature mismatch."), true},
		"a day that is none":       {v4(op, key, "yesterday", region), invalid("Invalid date format: yesterday."), false},
		"no day":                   {v4(op, key, "", region), invalid("Missing header: x-ots-signdate."), false},
		"no region":                {v4(op, key, today, ""), invalid("Missing header: x-ots-signregion."), false},
		"a header added afterward": {func(h http.Header) { v4(op, key, today, region)(h); h.Set("x-ots-tag", "x") }, authFailed("Signature mismatch."), true},
		"signed with the secret":   {v4(op, s.secret, today, region), authFailed("Signature mismatch."), true},
	} {
		t.Run(name, func(t *testing.T) {
			a := s.send(t, rawRequest{operation: op, body: body, after: v.after})
			a.check(t, v.want)
			if v.own {
				own := *s
				own.secret = key
				a.checkSigned(t, &own, op)
			}
			if a.header.Get("Authorization") == "" {
				t.Error("the answer is not signed")
			}
		})
	}
	for secret, want := range map[string]refusal{s.secret: accepted, "wrong": authFailed("Signature mismatch.")} { // as the SDK signs
		config := tablestore.NewDefaultTableStoreConfig()
		config.RetryTimes = 0
		credentials := common.CreateByCredentials(&common.DefaultCredentials{AccessKeyID: s.keyID, AccessKeySecret: secret}, region)
		_, err := tablestore.NewClientWithCredentialsProvider(s.endpoint, s.instance, credentials, config).ListTable()
		check(t, err, want)
	}
}

func TestEveryHeaderOfTheProtocolIsSigned(t *testing.T) {
	s := proving(t, "1.3.3", "1.3.4", "1.5.1", "1.5.2", "1.8.1", "1.8.2")
	if s.real {
		t.Skip("a made-up token is refused")
	}
	mismatch := authFailed("Signature mismatch.")
	for name, v := range map[string]struct {
		request rawRequest
		want    refusal
	}{
		"a token":                  {rawRequest{change: header("x-ots-ststoken", "TOKEN+/=")}, accepted},
		"a token not signed":       {rawRequest{after: header("x-ots-ststoken", "TOKEN")}, mismatch},
		"a token taken away":       {rawRequest{change: header("x-ots-ststoken", "TOKEN"), after: header("x-ots-ststoken", "")}, mismatch},
		"spaces around a value":    {rawRequest{change: header("x-ots-tag", "  a b  ")}, accepted},
		"names in upper case":      {rawRequest{change: func(h http.Header) { h["X-OTS-TAG"] = []string{"x"} }}, accepted},
		"what is not x-ots":        {rawRequest{after: header("x-acs-date", "x")}, accepted},
		"a content type":           {rawRequest{after: header("Content-Type", "application/x-protobuf")}, accepted},
		"another path than signed": {rawRequest{operation: "ListTable", change: header("x-ots-tag", "x"), after: header("x-ots-tag", "y")}, mismatch},
		"a priority, a trace, an ip": {rawRequest{change: func(h http.Header) {
			h.Set("x-ots-request-priority", "2")
			h.Set("x-ots-trace-threshold", "500")
			h.Set("x-ots-sourceip", "::1")
		}}, accepted},
		"a priority that is none":     {rawRequest{change: header("x-ots-request-priority", "high")}, invalid("Invalid request priority: high.")},
		"a priority that is too high": {rawRequest{change: header("x-ots-request-priority", "3")}, invalid("Invalid request priority: 3.")},
		"an API version nobody has":   {rawRequest{change: header("x-ots-apiversion", "2014-08-08")}, invalid("Unsupported API version: 2014-08-08.")},
		"a compression nobody has":    {rawRequest{change: header("x-ots-request-compress-type", "gzip")}, invalid("Unsupported compress type: gzip.")},
		"an answer's, that is none":   {rawRequest{change: header("x-ots-response-compress-type", "gzip")}, accepted},
		"a signature that is no text": {rawRequest{after: header("x-ots-signature", "%%%")}, mismatch},
	} {
		t.Run(name, func(t *testing.T) {
			v.request.operation = "ListTable"
			a := s.send(t, v.request)
			a.check(t, v.want)
			a.checkSigned(t, s, v.request.operation)
			conformance.Equal(t, a.header.Get("x-ots-response-compress-type"), "", "the answer is compressed")
		})
	}
}
