package commands

import (
	"cmp"
	"fmt"
	"os"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/address"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/profile"
)

const addressHelp = "A table is a name, in the instance that --endpoint and --instance or the environment name, or " +
	"ots://[PROFILE@]INSTANCE/TABLE.\n" +
	"A profile p is that of --profile: it has variables of its own, TABLESTORE_ENDPOINT_P, TABLESTORE_ACCESS_KEY_ID_P,\n" +
	"TABLESTORE_ACCESS_KEY_SECRET_P and TABLESTORE_SECURITY_TOKEN_P, or files (docs/jobs.md)."

type tableArgument struct {
	name    string
	address *address.Address // nil if flags name the instance
}

// shown returns the argument without its profile.
func (a *tableArgument) shown() string {
	if a.address == nil {
		return a.name
	}
	shown := *a.address
	shown.Profile = ""
	return shown.String()
}

func parseTableArgument(text string) (t tableArgument, err error) {
	if !address.Is(text) {
		if err := table.CheckTableName(text); err != nil {
			return t, usagef("%v", err)
		}
		return tableArgument{name: text}, nil
	}
	a, err := address.Parse(text)
	if err != nil {
		return t, usagef("%v", err)
	}
	return tableArgument{a.Table, &a}, nil
}

func openSide(c *call, arg tableArgument, a access) (*target, error) {
	if arg.address == nil {
		return openTarget(c, a)
	}
	of := *arg.address
	named, err := profileOf(c)
	if of.Profile != "" {
		named, err = profile.Find(of.Profile)
	}
	if err != nil {
		return nil, usagef("%s: %v", of, err)
	}
	endpoint := named.Endpoint
	if of.Profile == "" {
		endpoint = cmp.Or(c.of.Endpoint, os.Getenv(endpointEnv), endpoint)
		endpoint = address.EndpointOf(of.Instance, endpoint, cmp.Or(c.of.Instance, os.Getenv(instanceEnv), named.Instance))
	}
	if endpoint == "" {
		return nil, usagef("%s: no endpoint: set %s", of, address.Variable(endpointEnv, of.Profile))
	}
	if err := client.CheckEndpoint(endpoint); err != nil {
		return nil, usagef("%s: %v", of, err)
	}
	var provider common.CredentialsProvider
	if of.Profile != "" {
		if provider, _, err = named.Keys(); err != nil {
			return nil, usagef("%s: %v", of, err)
		}
	} else if provider, err = findCredentials(c); err != nil {
		return nil, err
	}
	t := &target{name: fmt.Sprintf("instance %s at %s", of.Instance, endpoint)}
	c.say.Line("%s: %s", a.as(), t.name)
	warnOfPlainHTTP(c.show, endpoint, provider)
	return t, t.remote(c, endpoint, of.Instance, provider)
}
