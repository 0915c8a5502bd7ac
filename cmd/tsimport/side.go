package main

import (
	"cmp"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"tsimport/internal/table"
	"tsimport/internal/tablestore/accesskey"
	"tsimport/internal/tablestore/address"
	"tsimport/internal/tablestore/client"
)

const addressHelp = "A table is a name, in the instance that --endpoint and --instance or the environment name, or ots://[PROFILE@]INSTANCE/TABLE.\n" +
	"A profile p has variables of its own: TABLESTORE_ENDPOINT_P, TABLESTORE_ACCESS_KEY_ID_P, TABLESTORE_ACCESS_KEY_SECRET_P and\n" +
	"TABLESTORE_SECURITY_TOKEN_P."

// tableArgument is a table as an argument.
type tableArgument struct {
	name    string
	address *address.Address // nil where the flags say whose table it is
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

// openSide opens the Tablestore that has the table of an argument.
func openSide(c *cli.Context, arg tableArgument, a access, show *display) (*target, error) {
	if arg.address == nil {
		return openTarget(c, a, show)
	}
	of := *arg.address
	endpoint := os.Getenv(address.Variable(endpointEnv, of.Profile))
	if of.Profile == "" {
		endpoint = cmp.Or(c.String("endpoint"), endpoint)
		endpoint = address.EndpointOf(of.Instance, endpoint, cmp.Or(c.String("instance"), os.Getenv(instanceEnv)))
	}
	if endpoint == "" {
		return nil, usagef("%s: no endpoint: set %s", of, address.Variable(endpointEnv, of.Profile))
	}
	if err := client.CheckEndpoint(endpoint); err != nil {
		return nil, usagef("%s: %v", of, err)
	}
	provider, err := accesskey.Environment("TABLESTORE", address.Variable("", of.Profile))
	switch {
	case err != nil:
		return nil, usagef("%s: %v", of, err)
	case provider == nil && of.Profile != "":
		return nil, usagef("%s: no access key: set %s and %s", of,
			address.Variable("TABLESTORE_ACCESS_KEY_ID", of.Profile), address.Variable("TABLESTORE_ACCESS_KEY_SECRET", of.Profile))
	case provider == nil:
		if provider, err = findCredentials(c); err != nil {
			return nil, err
		}
	}
	t := &target{name: fmt.Sprintf("instance %s at %s", of.Instance, endpoint)}
	say(c, show, "%s: %s", a.as(), t.name)
	warnOfPlainHTTP(show, endpoint, provider)
	t.Target = client.Target{Endpoint: endpoint, Instance: of.Instance, Credentials: provider, RequestTimeout: c.Duration("request-timeout")}
	return t, nil
}
