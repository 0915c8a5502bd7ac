package input

import (
	"net/url"
	"regexp"
	"strings"
)

// withheld stands for a secret in an address.
const withheld = "xxxxx"

// harmless are the query parameters whose values are shown. All others are withheld: a list of secret ones always misses the
// next vendor's, and a short value is no less a secret (pin, st, jwt, hdnts, …).
var harmless = words(`page per_page page_size pagesize limit offset count format type version v sv sr ver alt export download dl raw
	filename table sheet gid tab year month day date from to start end part chunk split shard n region lang encoding charset
	delimiter header sort order expires x-oss-expires x-amz-expires x-goog-expires x-amz-algorithm x-goog-algorithm
	x-oss-signature-version response-content-type`)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

// plainValue is what the value of a harmless parameter looks like: not another address, and not as long as a key.
var plainValue = regexp.MustCompile(`^[A-Za-z0-9._ +,/-]{0,32}$`)

// Redact returns an argument as it may be shown and kept: addresses without their secrets.
func Redact(arg string) string { return redactAny(arg) }

// redact returns an address as it may be shown: without user, password, fragment and the values of
// parameters that are not known to be harmless.
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
	b.WriteString(u.Host + redactPath(u.EscapedPath()))
	if u.RawQuery != "" {
		b.WriteString("?" + redactQuery(u.RawQuery))
	}
	return b.String()
}

// redactPath withholds what stands behind a semicolon of a path, as ;jsessionid=….
func redactPath(path string) string {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		if plain, _, found := strings.Cut(segment, ";"); found {
			segments[i] = plain + ";" + withheld
		}
	}
	return strings.Join(segments, "/")
}

func redactQuery(query string) string {
	parts := strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' })
	for i, part := range parts {
		name, value, found := strings.Cut(part, "=")
		switch {
		case !found:
			parts[i] = withheld // a value without a name
		case value != "" && !shows(name, value):
			parts[i] = name + "=" + withheld
		}
	}
	return strings.Join(parts, "&")
}

// shows reports whether the value of a parameter may be shown.
func shows(name, value string) bool {
	plainName, err := url.QueryUnescape(name)
	plain, valueErr := url.QueryUnescape(value)
	return err == nil && valueErr == nil && harmless[strings.ToLower(plainName)] && plainValue.MatchString(plain)
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
