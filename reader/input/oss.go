package input

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/aliyun/alibabacloud-oss-go-sdk-v2/oss"
	"github.com/aliyun/alibabacloud-oss-go-sdk-v2/oss/credentials"
)

// Variables of the environment that OSSOptions fall back to; ossutil and the SDKs of other languages read them too.
const (
	ossEndpointEnv = "OSS_ENDPOINT"
	ossRegionEnv   = "OSS_REGION"
)

// regionInHost finds the region in the name of a public, internal or dual-stack endpoint.
var regionInHost = regexp.MustCompile(`^(?:oss-([a-z]+-[a-z0-9-]+?)(?:-internal)?|([a-z]+-[a-z0-9-]+)\.oss)\.aliyuncs\.com$`)

// ossClient makes the client of an Expand when it is first needed.
func (e *expander) ossClient() (*oss.Client, error) {
	if e.oss != nil {
		return e.oss, nil
	}
	o := e.OSS
	if o.Endpoint == "" {
		o.Endpoint = os.Getenv(ossEndpointEnv)
	}
	if o.Region == "" {
		o.Region = os.Getenv(ossRegionEnv)
	}
	host, err := endpointHost(o.Endpoint)
	if err != nil {
		return nil, err
	}
	if m := regionInHost.FindStringSubmatch(host); m != nil && o.Region == "" {
		o.Region = m[1] + m[2]
	}
	if o.Endpoint == "" && o.Region == "" {
		return nil, fmt.Errorf("neither the endpoint nor the region of the bucket is known; give one, or set %s or %s", ossEndpointEnv, ossRegionEnv)
	}
	e.oss = newOSSClient(o, host, e.HTTPClient.Transport)
	return e.oss, nil
}

// newOSSClient leaves repeating to Retry, which also continues in the middle of a body, but for one case that only the SDK
// can mend: a clock that is wrong.
func newOSSClient(o OSSOptions, host string, transport http.RoundTripper) *oss.Client {
	config := oss.NewConfig().
		WithRetryer(correctClock{}).
		WithUsePathStyle(o.PathStyle || host == "localhost"). // the SDK itself does so with an IP address
		WithCredentialsProvider(provider(o.Credentials)).
		WithHttpClient(&http.Client{
			Transport: transport,
			// A redirect to another host breaks the signature; the error names the right endpoint.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		})
	if o.Endpoint != "" {
		config.WithEndpoint(o.Endpoint)
	}
	if o.Region != "" {
		config.WithRegion(o.Region)
	} else {
		config.WithSignatureVersion(oss.SignatureVersionV1) // V4 signs the region
	}
	return oss.NewClient(config)
}

func endpointHost(endpoint string) (string, error) {
	if endpoint == "" {
		return "", nil
	}
	address := endpoint
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.User != nil {
		return "", fmt.Errorf("the OSS endpoint %s is not a host; write it like oss-cn-hangzhou.aliyuncs.com, without the bucket's folder", Redact(endpoint))
	}
	return u.Hostname(), nil
}

func provider(f func(context.Context) (id, secret, token string, err error)) credentials.CredentialsProvider {
	if f == nil {
		return credentials.NewAnonymousCredentialsProvider()
	}
	return credentials.CredentialsProviderFunc(func(ctx context.Context) (credentials.Credentials, error) {
		id, secret, token, err := f(ctx)
		if err == nil && (id == "" || secret == "") {
			err = unusable{errors.New("there are no credentials for OSS; set an access key")}
		}
		return credentials.Credentials{AccessKeyID: id, AccessKeySecret: secret, SecurityToken: token}, err
	})
}

// correctClock makes the SDK repeat only what failed for a wrong clock, which it then knows.
type correctClock struct{}

func (correctClock) MaxAttempts() int                             { return 2 }
func (correctClock) RetryDelay(int, error) (time.Duration, error) { return 0, nil }
func (correctClock) IsErrorRetryable(err error) bool {
	var service *oss.ServiceError
	return errors.As(err, &service) && service.Code == "RequestTimeTooSkewed"
}

// plainOSS makes an SDK's error one of ours: the SDK's text has many lines.
func plainOSS(err error) error {
	var service *oss.ServiceError
	if !errors.As(err, &service) {
		return bare(err)
	}
	if service.StatusCode == http.StatusPreconditionFailed {
		return fmt.Errorf("%w: its ETag is another; run again when it no longer changes", ErrChanged)
	}
	text := service.Code
	if message := strings.Join(strings.Fields(service.Message), " "); message != "" && len(message) < 200 {
		text += " (" + strings.TrimRight(message, ".") + ")"
	}
	return &statusError{code: service.StatusCode, text: text, retryAfter: retryAfterOf(service.Headers)}
}

// plainBodies keeps OSS from packing what it sends, which it does with text for clients that accept gzip, as Go's do.
var plainBodies = oss.RequestCommon{Headers: map[string]string{"Accept-Encoding": "identity"}}

// ossObject fetches an object of OSS.
type ossObject struct {
	client      *oss.Client
	bucket, key string
	match       string
}

func (s *ossObject) fetch(ctx context.Context, off, n int64, _ bool) (*reply, error) {
	result, err := s.client.GetObject(ctx, &oss.GetObjectRequest{
		Bucket: oss.Ptr(s.bucket), Key: oss.Ptr(s.key), IfMatch: ptrOrNil(s.match), RequestCommon: plainBodies,
		// Without this behaviour OSS answers a range that ends beyond the object with the object.
		Range: oss.Ptr(rangeOf(off, n)), RangeBehavior: oss.Ptr("standard"),
	})
	if err != nil {
		return nil, plainOSS(err)
	}
	rep, err := newReply(result.StatusCode, result.Headers, result.ContentLength, result.Body, off)
	if err != nil {
		result.Body.Close()
		return nil, err
	}
	rep.version.modified = "" // listings write it in another form, and there is always an ETag
	return rep, nil
}

func ptrOrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// object adds an object. The paths are for its columns.
func (e *expander) object(client *oss.Client, bucket, key string, v version, base, below string) error {
	name := objectName(bucket, key)
	columns, err := e.columns(name, base, below)
	if err != nil {
		return err
	}
	src := &remote{name: name, version: v, ranges: true, retry: e.Retry,
		fetcher: &ossObject{client: client, bucket: bucket, key: key, match: v.matchable()}}
	e.add(Item{Name: name, Size: v.size, Version: v.String(), Columns: columns, src: src}, name)
	return nil
}

func objectName(bucket, key string) string { return "oss://" + bucket + "/" + key }

// headObject learns an object's version from the object itself.
func (e *expander) headObject(ctx context.Context, client *oss.Client, bucket, key string) (v version, err error) {
	err = e.Retry.attempt(ctx, func(ctx context.Context) error {
		result, err := client.HeadObject(ctx, &oss.HeadObjectRequest{Bucket: oss.Ptr(bucket), Key: oss.Ptr(key), RequestCommon: plainBodies})
		if err != nil {
			return plainOSS(err)
		}
		v = version{size: result.ContentLength, etag: oss.ToString(result.ETag)}
		return nil
	})
	return v, err
}

// exactObject adds the object key.
func (e *expander) exactObject(client *oss.Client, bucket, key string, v version) error {
	return e.object(client, bucket, key, v, path.Dir("/"+key), path.Base(key))
}
