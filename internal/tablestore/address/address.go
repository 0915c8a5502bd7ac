package address

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"example.com/tsimport/internal/table"
)

// Scheme is the prefix of every address.
const Scheme = "ots://"

// Address identifies a table of an instance.
type Address struct {
	Profile  string // name of the profile with the endpoint and access keys; "" is the default profile
	Instance string
	Table    string
}

// String is the inverse of Parse.
func (a Address) String() string {
	at := ""
	if a.Profile != "" {
		at = a.Profile + "@"
	}
	return Scheme + at + a.Instance + "/" + a.Table
}

// Is reports whether text looks like an address.
func Is(text string) bool {
	return len(text) >= len(Scheme) && strings.EqualFold(text[:len(Scheme)], Scheme)
}

var (
	profiles  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)
	instances = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*$`)
)

// Parse parses an address. An error does not repeat parts that may be secret.
func Parse(text string) (a Address, err error) {
	const want = Scheme + "INSTANCE/TABLE or " + Scheme + "PROFILE@INSTANCE/TABLE"
	if !Is(text) {
		return a, fmt.Errorf("table address: want %s", want)
	}
	rest := text[len(Scheme):]
	if profile, after, found := strings.Cut(rest, "@"); found {
		if !profiles.MatchString(profile) {
			return a, fmt.Errorf("table address: the part before the @ names a profile, with letters, digits and "+
				"underscores; access keys come from the environment; want %s", want)
		}
		a.Profile, rest = profile, after
	}
	instance, name, found := strings.Cut(rest, "/")
	if !found || !instances.MatchString(instance) {
		return a, fmt.Errorf("address %s: want %s", text, want)
	}
	if err := table.CheckTableName(name); err != nil {
		return a, fmt.Errorf("address %s: %w", text, err)
	}
	a.Instance, a.Table = instance, name
	return a, nil
}

// Variable returns the name of a profile's environment variable, such as TABLESTORE_ENDPOINT_OLD for profile old.
func Variable(name, profile string) string {
	if profile == "" {
		return name
	}
	return name + "_" + strings.ToUpper(profile)
}

// EndpointOf returns the endpoint of instance, given that of another instance, of, in the same region. The service's
// endpoints begin with the instance's name; any other endpoint serves all instances.
func EndpointOf(instance, endpoint, of string) string {
	u, err := url.Parse(endpoint)
	if err != nil || of == "" {
		return endpoint
	}
	if rest, found := strings.CutPrefix(u.Host, of+"."); found {
		u.Host = instance + "." + rest
		return u.String()
	}
	return endpoint
}
