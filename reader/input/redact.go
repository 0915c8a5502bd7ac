package input

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	tableaddress "example.com/tsimport/internal/tablestore/address"
)

// withheld replaces secrets in addresses.
const withheld = "xxxxx"

// harmless lists the query parameters whose values are shown. Others are withheld: no list of secrets is complete.
var harmless = strings.Fields(
	`page pagesize page_size per_page limit offset count part partnumber chunk split shard format type version versionid
	v sv sr ver alt file filename table dataset sheet gid tab year month day hour date from to start end region lang locale encoding charset
	compression delimiter header sort order expires x-oss-expires x-amz-expires x-goog-expires x-amz-algorithm x-goog-algorithm
	x-oss-signature-version`)

// ofDatabases lists parameters of database addresses whose values are shown, so that a run folder suffices to resume.
var ofDatabases = strings.Fields(`table key host hostaddr port user dbname service servicefile passfile connect_timeout application_name options client_encoding timezone datestyle
	search_path target_session_attrs load_balance_hosts require_auth channel_binding gssencmode krbsrvname krbspn min_protocol_version max_protocol_version
	sslmode sslrootcert sslcert sslkey sslsni sslnegotiation sslinline ssl_min_protocol_version ssl_max_protocol_version
	socket defaults-file ssl-mode ssl-ca ssl-cert ssl-key`)

// database matches the scheme of a database address. Such an address is shown with the user, unless it has a password.
var database = regexp.MustCompile(`(?i)^(?:postgres|postgresql|mysql|mariadb)$`)

// sqliteFile matches the address of a table in an SQLite file, which contains no secret.
var sqliteFile = regexp.MustCompile(`(?i)^sqlite:/[^?#@]*\?table=[^&#@]*$`)

// shortestToken is the shortest length in base64 at which a parameter name without a value is taken for a token.
const shortestToken = 16

// mostShown is the length of the longest parameter name or value that is shown.
const mostShown = 40

// Patterns of addresses and of the parts that are shown.
var (
	// harmlessValue matches values that cannot hold an address, a query or a signature, if not longer than mostShown.
	harmlessValue = regexp.MustCompile(`^[A-Za-z0-9._/+:, -]*$`)
	parameterName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.\[\]-]*$`)
	// wholeAddress matches an argument that is an address, perhaps after the @ of a list or after --flag=.
	wholeAddress = regexp.MustCompile(`(?is)^(@|--?[a-z-]+=@?)?((?:[a-z][a-z0-9+.-]+:/|(?:https?|oss|s3):).*)$`)
	// addressInText matches an address within a text.
	addressInText = regexp.MustCompile(`(?i)(?:[a-z][a-z0-9+.-]+:/|(?:https?|oss|s3):)[^\s"'<>` + "`" + `]+`)
	userInText    = regexp.MustCompile(`//[^/\s"]*:[^/\s"]*@`) // for addresses without a scheme
	ordinal       = regexp.MustCompile(`^[0-9]{1,3}$`)
	jsonWebToken  = regexp.MustCompile(`eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`)
)

// secretWords are words in the name of a path segment such as /token=…/ that make its value secret.
var secretWords = []string{
	"sign", "sig", "token", "secret", "pass", "pwd", "key", "credential", "auth", "code", "session", "hdn", "hmac", "jwt",
	"sid", "acl",
}

// Redact returns an argument without the secrets of its addresses, to be shown or stored. It is idempotent.
func Redact(arg string) string {
	if m := wholeAddress.FindStringSubmatch(arg); m != nil {
		return m[1] + redact(m[2])
	}
	return RedactText(arg)
}

// RedactText returns text without the secrets of the addresses in it.
func RedactText(text string) string {
	if !strings.Contains(text, ":") {
		return text
	}
	text = addressInText.ReplaceAllStringFunc(text, func(found string) string {
		address := strings.TrimRight(found, ".,:;!)]}")
		return redact(address) + found[len(address):]
	})
	return userInText.ReplaceAllString(text, "//"+withheld+"@")
}

// RedactError returns err without the secrets of addresses in its text.
func RedactError(err error) error {
	if err == nil {
		return nil
	}
	if text := RedactText(err.Error()); text != err.Error() {
		return &scrubbed{text: text, cause: err}
	}
	return err
}

// redact removes the user, password and fragment of an address, and parameter values that may be secret.
func redact(address string) string {
	if _, err := tableaddress.Parse(address); err == nil {
		return address // the name before its @ is a profile
	}
	address, number := cutOrdinal(address)
	scheme, rest, found := strings.Cut(address, "://")
	if found && (strings.EqualFold(scheme, "oss") || strings.EqualFold(scheme, "s3")) {
		return redactObject(scheme, rest) + number
	}
	if sqliteFile.MatchString(address) {
		return address + number
	}
	u, err := url.Parse(address)
	if err != nil || !found || u.Opaque != "" || splitByPassword(u) {
		return redactUnparsed(address) + number
	}
	user, parameter := withheld+"@", redactParameter
	if database.MatchString(scheme) {
		parameter = redactSetting
		if _, has := u.User.Password(); u.User != nil && !has {
			user = u.User.String() + "@"
		}
	}
	var b strings.Builder
	b.WriteString(scheme + "://")
	if u.User != nil {
		b.WriteString(user)
	}
	b.WriteString(u.Host + redactPath(u.EscapedPath()))
	if u.RawQuery != "" {
		b.WriteString("?" + redactQuery(u.RawQuery, parameter))
	}
	return b.String() + number
}

func cutOrdinal(address string) (rest, number string) {
	if i := strings.LastIndexByte(address, '#'); i >= 0 && ordinal.MatchString(address[i+1:]) {
		return address[:i], address[i:]
	}
	return address, ""
}

// splitByPassword reports whether a /, ? or # in a password was taken for the host's end, as in http://user:12/3@host.
func splitByPassword(u *url.URL) bool {
	if u.Path == "" && u.RawQuery == "" && strings.Contains(u.Fragment, "@") {
		return u.User == nil
	}
	return u.User == nil && u.Port() != "" && (strings.Contains(u.EscapedPath(), "@") || u.Path == "" &&
		strings.Contains(u.RawQuery, "@"))
}

// redactObject redacts an oss:// or s3:// address, which has no user and no query: ? is part of a glob.
func redactObject(scheme, rest string) string {
	bucket, key, slash := strings.Cut(rest, "/")
	if i := strings.LastIndexByte(bucket, '@'); i >= 0 {
		bucket = withheld + bucket[i:]
	} else if i := strings.IndexByte(rest, '@'); i >= 0 && strings.Contains(bucket, ":") {
		return scheme + "://" + withheld + redactQueryOf(rest[i:])
	}
	bucket = redactQueryOf(bucket)
	if slash {
		bucket += "/" + redactQueryOf(key)
	}
	return scheme + "://" + bucket
}

// redactQueryOf redacts the query in a key that seems to come from a signed address.
func redactQueryOf(key string) string {
	if i := strings.IndexByte(key, '?'); i >= 0 && strings.Contains(key[i:], "=") {
		return key[:i+1] + redactQuery(key[i+1:], redactParameter)
	}
	return key
}

// redactPath removes secrets from a path: a segment's parameters (;jsessionid=…), token=… and JSON web tokens.
func redactPath(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		s, _, found := strings.Cut(s, ";")
		if name, value, ok := strings.Cut(s, "="); ok && (secret(name) || secret(value)) {
			s = name + "=" + withheld
		}
		if found {
			s += ";" + withheld
		}
		segments[i] = s
	}
	return jsonWebToken.ReplaceAllString(strings.Join(segments, "/"), withheld)
}

func secret(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(name, w) })
}

func redactQuery(query string, parameter func(string) string) string {
	parts := strings.Split(query, "&")
	for i, part := range parts {
		parts[i] = parameter(part)
	}
	return strings.Join(parts, "&")
}

// redactSetting is redactParameter for the address of a database.
func redactSetting(part string) string {
	name, value, _ := strings.Cut(part, "=")
	if slices.Contains(ofDatabases, strings.ToLower(name)) && !strings.Contains(value, "@") &&
		!jsonWebToken.MatchString(value) {
		return part
	}
	return redactParameter(part)
}

func redactParameter(part string) string {
	name, value, found := strings.Cut(part, "=")
	plainName, err := url.QueryUnescape(name)
	switch {
	case part == "":
		return part
	case err != nil || len(plainName) > mostShown || !parameterName.MatchString(plainName):
		return withheld
	case strings.Trim(value, "=") == "":
		// A token needs no name, and base64 may end in =.
		if slices.Contains(harmless, strings.ToLower(plainName)) || found && value == "" && len(part) < shortestToken {
			return part
		}
		return withheld
	case !slices.Contains(harmless, strings.ToLower(plainName)):
		return name + "=" + withheld
	}
	if plain, err := url.QueryUnescape(value); err != nil || len(plain) > mostShown || !harmlessValue.MatchString(plain) ||
		jsonWebToken.MatchString(plain) {
		return name + "=" + withheld
	}
	return part
}

// redactUnparsed redacts an address that cannot be parsed. It removes everything that may be a secret.
func redactUnparsed(address string) string {
	scheme, rest, _ := strings.Cut(address, ":")
	slashes := rest[:len(rest)-len(strings.TrimLeft(rest, "/"))]
	rest = rest[len(slashes):]
	if i := strings.LastIndex(rest, "@"); i >= 0 {
		rest = withheld + rest[i:]
	}
	if i := strings.IndexAny(rest, "?#;"); i >= 0 {
		rest = rest[:i] + "?" + withheld
	}
	return scheme + ":" + slashes + rest
}

// queryInText matches the query of an address, including the question mark.
var queryInText = regexp.MustCompile(`\?[^\s"]*`)

// scrub removes secrets from the text of a net/http error, which may quote the target of a refused redirect.
func scrub(err error) error {
	text := queryInText.ReplaceAllString(err.Error(), "?"+withheld)
	if text = RedactText(text); text == err.Error() {
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
