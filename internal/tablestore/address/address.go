package address

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"example.com/tsimport/internal/table"
)

// Scheme is what an address begins with.
const Scheme = "ots://"

// Address is a table of an instance.
type Address struct {
	Profile  string // whose endpoint and access keys are used; "" is those of everything else
	Instance string
	Table    string
}

// String is the address as Parse reads it.
func (a Address) String() string {
	at := ""
	if a.Profile != "" {
		at = a.Profile + "@"
	}
	return Scheme + at + a.Instance + "/" + a.Table
}

// Is reports whether an argument is meant to be an address.
func Is(text string) bool {
	return len(text) >= len(Scheme) && strings.EqualFold(text[:len(Scheme)], Scheme)
}

var (
	profiles  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)
	instances = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*$`)
)

// Parse reads an address. What may hold a secret is not repeated in its error.
func Parse(text string) (a Address, err error) {
	const want = Scheme + "INSTANCE/TABLE or " + Scheme + "PROFILE@INSTANCE/TABLE"
	if !Is(text) {
		return a, fmt.Errorf("address of a table: want %s", want)
	}
	rest := text[len(Scheme):]
	if profile, after, found := strings.Cut(rest, "@"); found {
		if !profiles.MatchString(profile) {
			return a, fmt.Errorf("address of a table: what stands before the @ is a profile, a name of letters, digits and underscores; access keys come from the environment; want %s", want)
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

// Variable is the variable of the environment that holds for a profile what one holds for everything else: that of
// TABLESTORE_ENDPOINT for the profile old is TABLESTORE_ENDPOINT_OLD.
func Variable(name, profile string) string {
	if profile == "" {
		return name
	}
	return name + "_" + strings.ToUpper(profile)
}

// EndpointOf is the endpoint of an instance, where one of another instance of the same region is known: an endpoint of the service
// begins with the name of its instance. Any other endpoint serves all instances.
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
