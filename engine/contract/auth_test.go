package contract

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/conformance"
)

func authFailed(message string) refusal { return refusal{403, "OTSAuthFailed", message} }

func header(name, value string) func(http.Header) {
	return func(h http.Header) {
		if value == "" {
			h.Del(name)
		} else {
			h.Set(name, value)
		}
	}
}

func changed(name, value string) rawRequest { return rawRequest{change: header(name, value)} }

func added(name, value string) rawRequest { return rawRequest{after: header(name, value)} }

func missing(name string) refusal { return invalid("Missing header: x-ots-" + name + ".") }

var mismatch = authFailed("Signature mismatch.")

func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

func TestOnlyAuthenticatedRequestsAreServed(t *testing.T) {
	s := proving(t, "1.1.1", "1.1.3", "1.1.5", "1.2.3", "1.3.1", "1.3.2", "1.3.3", "1.4.1", "1.4.2", "1.4.3",
		"1.5.2", "1.5.3", "1.5.4", "1.1.4", "1.7.1", "1.7.2", "1.9.1", "1.10.1")
	now, ids := time.Now(), map[string]bool{}
	early, late := stamp(now.Add(-20*time.Minute)), stamp(now.Add(20*time.Minute))
	onlyPost := refusal{405, "OTSMethodNotAllowed", "Only POST method for requests is supported."}
	shifted := "Mismatch between system time and x-ots-date: "
	const wrongMD5 = "1B2M2Y8AsgTpgAmY7PhCfA=="
	for name, v := range map[string]struct {
		request  rawRequest
		want     refusal
		unsigned bool // the client cannot verify the answer's signature
	}{
		"a request in order":  {rawRequest{}, accepted, false},
		"no such key id":      {rawRequest{keyID: "nobody"}, authFailed("The AccessKeyID does not exist."), true},
		"a wrong secret":      {rawRequest{secret: "wrong"}, mismatch, true},
		"a header not signed": {added("x-ots-sdk-traceid", "1"), mismatch, true},
		"any signed header":   {changed("x-ots-sdk-traceid", "1"), accepted, false},
		"no such instance":    {rawRequest{instance: "no-such-instance"}, authFailed("The instance is not found."), true},
		"another body's MD5": {changed("x-ots-contentmd5", wrongMD5),
			authFailed("Mismatch between MD5 value of request body and x-ots-contentmd5 in header."), false},
		"a clock 20 min slow": {changed("x-ots-date", early), authFailed(shifted + early + "."), false},
		"a clock 20 min fast": {changed("x-ots-date", late), authFailed(shifted + late + "."), false},
		"a clock 10 min slow": {changed("x-ots-date", stamp(now.Add(-10*time.Minute))), accepted, false},
		"a date of seconds":   {changed("x-ots-date", now.UTC().Format("2006-01-02T15:04:05Z")), accepted, false},
		"a six-digit date":    {changed("x-ots-date", now.UTC().Format("2006-01-02T15:04:05.")+"123111Z"), accepted, false},
		"a date of letters":   {changed("x-ots-date", "yesterday"), invalid("Invalid date format: yesterday."), false},
		"no date":             {changed("x-ots-date", ""), missing("date"), true},
		"no API version":      {changed("x-ots-apiversion", ""), missing("apiversion"), true},
		"no access key id":    {changed("x-ots-accesskeyid", ""), missing("accesskeyid"), true},
		"no instance":         {changed("x-ots-instancename", ""), missing("instancename"), true},
		"no MD5":              {changed("x-ots-contentmd5", ""), missing("contentmd5"), true},
		"no signature":        {added("x-ots-signature", ""), missing("signature"), true},
		"GET for POST":        {rawRequest{method: http.MethodGet}, onlyPost, true},
		"PUT for POST":        {rawRequest{method: http.MethodPut}, onlyPost, true},
		"DELETE for POST":     {rawRequest{method: http.MethodDelete}, refusal{405, "OTSMethodNotAllowed", ""}, true},
		"a body too long":     {rawRequest{body: make([]byte, 5<<20+1)}, refusal{413, "OTSRequestBodyTooLarge", ""}, true},
		"no such operation":   {rawRequest{operation: "DropThem"}, invalid("Unsupported operation: DropThem."), false},
		"a lower-case name":   {rawRequest{operation: "listtable"}, invalid("Unsupported operation: listtable."), false},
		"a missing table":     {rawRequest{operation: "DescribeTable", body: message{}.text(1, "none")}, noSuchTable, false},
		"an unparsable body":  {rawRequest{operation: "DescribeTable", body: []byte{0xff, 0xff}}, invalid(""), false},
		"an empty body":       {rawRequest{operation: "DescribeTable"}, invalid(""), false},
	} {
		t.Run(name, func(t *testing.T) {
			v.request.operation = cmp.Or(v.request.operation, "ListTable")
			a := s.send(t, v.request)
			a.check(t, v.want)
			if unknown := v.request.keyID != "" || name == "no access key id"; unknown && a.header.Get("Authorization") != "" {
				t.Errorf("Authorization %q", a.header.Get("Authorization"))
			} else if !unknown && (!v.unsigned || !s.real) {
				a.checkSigned(t, s, v.request.operation)
			}
			id := a.header.Get("x-ots-requestid")
			conformance.True(t, id != "" && !ids[id] && a.header.Get("x-ots-contenttype") != "",
				"id %q, content type %q", id, a.header.Get("x-ots-contenttype"))
			ids[id] = true
		})
	}
}

func compressed(t testing.TB, body message, size int) rawRequest {
	t.Helper()
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	must(t, conformance.ErrorOf(z.Write(body)))
	must(t, z.Close())
	return rawRequest{operation: "DescribeTable", body: packed.Bytes(), change: func(h http.Header) {
		h.Set("x-ots-request-compress-type", "deflate")
		h.Set("x-ots-request-compress-size", strconv.Itoa(size))
	}}
}

func TestBodiesMayBeCompressed(t *testing.T) {
	s := proving(t, "1.8.1", "1.8.2")
	tb := s.newTable(t, tableOptions{})
	body := message{}.text(1, tb.name)
	s.send(t, compressed(t, body, len(body))).check(t, accepted)
	s.send(t, compressed(t, body, len(body)+1)).check(t, invalid(""))
	t.Run("an answer is compressed on request", func(t *testing.T) {
		plain := s.ask(t, "DescribeTable", body)
		deflated := header("x-ots-response-compress-type", "deflate")
		a := s.send(t, rawRequest{operation: "DescribeTable", body: body, change: deflated})
		a.check(t, accepted)
		a.checkSigned(t, s, "DescribeTable")
		got := a.header.Get("x-ots-response-compress-size")
		conformance.True(t, got == strconv.Itoa(len(plain.body)), "raw size %s, want %d", got, len(plain.body))
		r := conformance.Try(zlib.NewReader(bytes.NewReader(a.body))).Must(t)
		inflated := conformance.Try(io.ReadAll(r)).Must(t)
		diff(t, inflated, plain.body)
	})
}

// keyV4 returns the base64 text of the key for a day and region, which signs requests and their answers.
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

// v4 returns a change to a request: it states the day and region, and replaces the signature by one with key.
func v4(operation, key, day, region string) func(http.Header) {
	return func(h http.Header) {
		h.Del("x-ots-signature")
		h.Set("x-ots-signdate", day)
		h.Set("x-ots-signregion", region)
		sum := sha256Of([]byte(key), "/"+operation+"\nPOST\n\n"+canonical(h)+"ots")
		h.Set("x-ots-signaturev4", base64.StdEncoding.EncodeToString(sum))
	}
}

func TestSignatureV4IsVerifiedAndAnswered(t *testing.T) {
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
		own   bool // the answer is signed with the day's key
	}{
		"rightly signed":   {v4(op, key, today, region), noSuchTable, true},
		"another region":   {v4(op, key, today, "cn-beijing"), mismatch, false},
		"another day":      {v4(op, key, "20240102", region), mismatch, false},
		"another secret":   {v4(op, keyV4("wrong", today, region), today, region), mismatch, true},
		"a named day":      {v4(op, key, "yesterday", region), invalid("Invalid date format: yesterday."), false},
		"no day":           {v4(op, key, "", region), missing("signdate"), false},
		"no region":        {v4(op, key, today, ""), missing("signregion"), false},
		"unsigned header":  {func(h http.Header) { v4(op, key, today, region)(h); h.Set("x-ots-tag", "x") }, mismatch, true},
		"signed by secret": {v4(op, s.secret, today, region), mismatch, true},
	} {
		t.Run(name, func(t *testing.T) {
			a := s.send(t, rawRequest{operation: op, body: body, after: v.after})
			a.check(t, v.want)
			if v.own {
				own := *s
				own.secret = key
				a.checkSigned(t, &own, op)
			}
			conformance.True(t, a.header.Get("Authorization") != "", "the answer is not signed")
		})
	}
	for secret, want := range map[string]refusal{s.secret: accepted, "wrong": mismatch} { // as the SDK signs
		config := tablestore.NewDefaultTableStoreConfig()
		config.RetryTimes = 0
		keys := &common.DefaultCredentials{AccessKeyID: s.keyID, AccessKeySecret: secret}
		credentials := common.CreateByCredentials(keys, region)
		_, err := tablestore.NewClientWithCredentialsProvider(s.endpoint, s.instance, credentials, config).ListTable()
		check(t, err, want)
	}
}

func TestAllProtocolHeadersAreSigned(t *testing.T) {
	s := proving(t, "1.3.3", "1.3.4", "1.5.1", "1.5.2", "1.8.1", "1.8.2")
	if s.real {
		t.Skip("a made-up token is refused")
	}
	for name, v := range map[string]struct {
		request rawRequest
		want    refusal
	}{
		"a token":            {changed("x-ots-ststoken", "TOKEN+/="), accepted},
		"a token not signed": {added("x-ots-ststoken", "TOKEN"), mismatch},
		"a token taken away": {rawRequest{change: header("x-ots-ststoken", "TOKEN"), after: header("x-ots-ststoken", "")},
			mismatch},
		"spaces around a value": {changed("x-ots-tag", "  a b  "), accepted},
		"names in upper case":   {rawRequest{change: func(h http.Header) { h["X-OTS-TAG"] = []string{"x"} }}, accepted},
		"what is not x-ots":     {added("x-acs-date", "x"), accepted},
		"a content type":        {added("Content-Type", "application/x-protobuf"), accepted},
		"one header changed": {rawRequest{operation: "ListTable", change: header("x-ots-tag", "x"),
			after: header("x-ots-tag", "y")}, mismatch},
		"a priority, a trace, an ip": {rawRequest{change: func(h http.Header) {
			h.Set("x-ots-request-priority", "2")
			h.Set("x-ots-trace-threshold", "500")
			h.Set("x-ots-sourceip", "::1")
		}}, accepted},
		"a named priority":    {changed("x-ots-request-priority", "high"), invalid("Invalid request priority: high.")},
		"a priority of 3":     {changed("x-ots-request-priority", "3"), invalid("Invalid request priority: 3.")},
		"another API version": {changed("x-ots-apiversion", "2014-08-08"), invalid("Unsupported API version: 2014-08-08.")},
		"gzip":                {changed("x-ots-request-compress-type", "gzip"), invalid("Unsupported compress type: gzip.")},
		"gzip of an answer":   {changed("x-ots-response-compress-type", "gzip"), accepted},
		"a wrong signature":   {added("x-ots-signature", "%%%"), mismatch},
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
