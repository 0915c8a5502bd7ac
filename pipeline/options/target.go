package options

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"

	"example.com/tsimport/internal/tablestore/accesskey"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/plan"
)

// Target is an instance of Tablestore with its credentials. Zero fields are taken from the environment.
type Target struct {
	Endpoint string `json:"endpoint,omitempty"` // https://host or https://host:port; "" means TABLESTORE_ENDPOINT
	Instance string `json:"instance,omitempty"` // "" means TABLESTORE_INSTANCE

	// The access key, with SecurityToken if temporary; "" means the environment's, or the official provider chain's.
	AccessKeyID     string `json:"-"`
	AccessKeySecret string `json:"-"`
	SecurityToken   string `json:"-"`
	// Credentials, if not nil, supplies the access key of every request instead, so that keys can be rotated.
	Credentials common.CredentialsProvider `json:"-"`

	RequestTimeout time.Duration `json:"request-timeout,omitempty"` // time without progress; 0 means 30 seconds
	// Transport replaces the network in tests against the engine of this module; nil uses the network.
	Transport http.RoundTripper `json:"-"`
}

// Open returns the target, completed from the environment, and a name for it.
func (t *Target) Open(ctx context.Context) (to client.Target, name string, err error) {
	to = client.Target{
		Endpoint:    cmp.Or(t.Endpoint, os.Getenv("TABLESTORE_ENDPOINT")),
		Instance:    cmp.Or(t.Instance, os.Getenv("TABLESTORE_INSTANCE")),
		Credentials: t.Credentials, Transport: t.Transport, RequestTimeout: t.RequestTimeout,
	}
	switch {
	case to.Endpoint == "":
		return to, "", plan.Usagef("no endpoint: set Target.Endpoint or TABLESTORE_ENDPOINT")
	case to.Instance == "":
		return to, "", plan.Usagef("no instance: set Target.Instance or TABLESTORE_INSTANCE")
	case t.RequestTimeout < 0:
		return to, "", plan.Usagef("Target.RequestTimeout %v: want more than 0", t.RequestTimeout)
	case (t.AccessKeyID == "") != (t.AccessKeySecret == ""):
		return to, "", plan.Usagef("Target.AccessKeyID and Target.AccessKeySecret: only one of them is set; set both")
	}
	if err := client.CheckEndpoint(to.Endpoint); err != nil {
		return to, "", plan.Usagef("%v", err)
	}
	if to.AcceptUnsigned, err = client.AcceptUnsigned(); err != nil {
		return to, "", plan.Usagef("%v", err)
	}
	if to.Credentials == nil && t.AccessKeyID != "" {
		to.Credentials = &common.DefaultCredentialsProvider{AccessKeyID: t.AccessKeyID, AccessKeySecret: t.AccessKeySecret,
			SecurityToken: t.SecurityToken}
	}
	if to.Credentials == nil {
		if to.Credentials, err = accesskey.Find(ctx, nil); errors.As(err, new(*accesskey.DownError)) {
			return to, "", err
		} else if err != nil {
			return to, "", plan.Usagef("%v", err)
		}
	}
	return to, fmt.Sprintf("instance %s at %s", to.Instance, to.Endpoint), nil
}
