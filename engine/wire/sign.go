package wire

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"net/http"
	"slices"
	"strings"
)

// The protocol's headers, as net/http spells them.
const (
	HeaderDate             = "X-Ots-Date"
	HeaderAPIVersion       = "X-Ots-Apiversion"
	HeaderAccessKeyID      = "X-Ots-Accesskeyid"
	HeaderInstance         = "X-Ots-Instancename"
	HeaderMD5              = "X-Ots-Contentmd5"
	HeaderSignature        = "X-Ots-Signature"
	HeaderSignatureV4      = "X-Ots-Signaturev4"
	HeaderSignDate         = "X-Ots-Signdate"
	HeaderSignRegion       = "X-Ots-Signregion"
	HeaderRequestID        = "X-Ots-Requestid"
	HeaderContentType      = "X-Ots-Contenttype"
	HeaderRequestCompress  = "X-Ots-Request-Compress-Type"
	HeaderRequestSize      = "X-Ots-Request-Compress-Size"
	HeaderResponseCompress = "X-Ots-Response-Compress-Type"
	HeaderPriority         = "X-Ots-Request-Priority"
	HeaderResponseSize     = "X-Ots-Response-Compress-Size"

	APIVersion = "2015-12-31"
)

// Sign returns the V2 signature of a request: the HMAC-SHA1 of path, method and x-ots headers, without signatures.
func Sign(secret, path string, header http.Header) string {
	return base64.StdEncoding.EncodeToString(sum(sha1.New, []byte(secret), stringToSign(path, header)))
}

// DeriveKeyV4 returns the key of a day and region. Its base64 text is the key for requests and answers.
func DeriveKeyV4(secret, signDate, region string) string {
	key := []byte("aliyun_v4" + secret)
	for _, part := range []string{signDate, region, "ots", "aliyun_v4_request"} {
		key = sum(sha256.New, key, []byte(part))
	}
	return base64.StdEncoding.EncodeToString(key)
}

// SignV4 returns the V4 signature with a key from DeriveKeyV4.
func SignV4(derived, path string, header http.Header) string {
	return base64.StdEncoding.EncodeToString(sum(sha256.New, []byte(derived),
		append(stringToSign(path, header), "ots"...)))
}

// SignResponse signs an answer: its x-ots headers, then the path without a line feed.
func SignResponse(secret, path string, header http.Header) string {
	text := append(appendHeaders(make([]byte, 0, 512), header), path...)
	return base64.StdEncoding.EncodeToString(sum(sha1.New, []byte(secret), text))
}

func sum(hash func() hash.Hash, key, data []byte) []byte {
	mac := hmac.New(hash, key)
	mac.Write(data)
	return mac.Sum(nil)
}

func stringToSign(path string, header http.Header) []byte {
	b := make([]byte, 0, 512)
	b = append(b, path...)
	b = append(b, "\nPOST\n\n"...)
	return appendHeaders(b, header)
}

// appendHeaders appends the x-ots headers, in lower case and sorted by name.
func appendHeaders(b []byte, header http.Header) []byte {
	type line struct{ name, value string }
	lines := make([]line, 0, 16)
	for name, values := range header {
		if len(name) <= 6 || !strings.EqualFold(name[:6], "x-ots-") || len(values) == 0 {
			continue
		}
		lower := strings.ToLower(name)
		if lower == "x-ots-signature" || lower == "x-ots-signaturev4" {
			continue
		}
		lines = append(lines, line{lower, strings.TrimSpace(values[0])})
	}
	slices.SortFunc(lines, func(x, y line) int { return strings.Compare(x.name, y.name) })
	for _, l := range lines {
		b = append(b, l.name...)
		b = append(b, ':')
		b = append(b, l.value...)
		b = append(b, '\n')
	}
	return b
}
