package input

import (
	"net/url"
	"regexp"
	"strings"
)

// withheld stands for a secret in an address.
const withheld = "xxxxx"

// secretWords in a query parameter's name make its value a secret: a list of names would miss the next vendor's.
var secretWords = []string{"sign", "sig", "token", "secret", "passw", "pwd", "key", "credential", "auth", "code", "session"}

// secretPrefixes are of parameters that belong to a vendor's signature.
var secretPrefixes = []string{"x-amz-", "x-oss-", "x-goog-", "x-cos-", "x-tos-", "x-obs-", "x-ms-"}

// Redact returns an argument as it may be shown and kept: addresses without their secrets.
func Redact(arg string) string { return redactAny(arg) }

// redact returns an address as it may be shown: without user, password, fragment and the values of secret parameters.
func redact(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Opaque != "" {
		return redactUnparsed(address)
	}
	var b strings.Builder
	b.WriteString(u.Scheme + "://")
	if u.User != nil {
		b.WriteString(withheld + "@")
	}
	b.WriteString(u.Host + u.EscapedPath())
	if u.RawQuery != "" {
		b.WriteString("?" + redactQuery(u.RawQuery))
	}
	return b.String()
}

func redactQuery(query string) string {
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, value, found := strings.Cut(part, "=")
		plain, err := url.QueryUnescape(name)
		if err != nil || found && value != "" && secret(strings.ToLower(plain)) {
			parts[i] = name + "=" + withheld
		}
	}
	return strings.Join(parts, "&")
}

func secret(name string) bool {
	for _, p := range secretPrefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	for _, w := range secretWords {
		if strings.Contains(name, w) {
			return true
		}
	}
	return false
}

// redactUnparsed is for text that is no address: with no grammar to go by, all that may be a secret is left out.
func redactUnparsed(address string) string {
	scheme, rest, _ := strings.Cut(address, "://")
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		rest = rest[:i] + "?" + withheld
	}
	if i := strings.LastIndex(rest, "@"); i >= 0 {
		rest = withheld + rest[i:]
	}
	return scheme + "://" + rest
}

// Parts of addresses in the text of an error.
var (
	queryInText = regexp.MustCompile(`\?[^\s"]*`)
	userInText  = regexp.MustCompile(`//[^/\s"]*@`)
)

// scrub takes secrets out of the text of an error of net/http, which quotes the target of a redirect it cannot follow.
func scrub(err error) error {
	text := queryInText.ReplaceAllString(err.Error(), "?"+withheld)
	if text = userInText.ReplaceAllString(text, "//"+withheld+"@"); text == err.Error() {
		return err
	}
	return &scrubbed{text: text, cause: err}
}

type scrubbed struct {
	text  string
	cause error
}

func (s *scrubbed) Error() string { return s.text }
func (s *scrubbed) Unwrap() error { return s.cause }
