package objectstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"time"

	"github.com/aliyun/alibabacloud-oss-go-sdk-v2/oss"
	"github.com/aliyun/alibabacloud-oss-go-sdk-v2/oss/credentials"
)

// OSS configures the access to objects with oss:// addresses.
type OSS struct {
	Endpoint  string // "" means OSS_ENDPOINT or the region's endpoint; the default scheme is https
	Region    string // "" means OSS_REGION or the endpoint's region; if it is unknown, requests are signed with V1
	PathStyle bool   // put the bucket in the path, not the host name, as is always done for IP addresses and localhost
	// Credentials is called for every request, because keys rotate; token may be "". Without it, requests are not signed.
	Credentials func(ctx context.Context) (id, secret, token string, err error)
}

// Environment variables used for empty fields. ossutil and the SDKs for other languages also read them.
const (
	ossEndpointEnv = "OSS_ENDPOINT"
	ossRegionEnv   = "OSS_REGION"
)

// regionInHost matches the region in a public, internal or dual-stack endpoint.
var regionInHost = regexp.MustCompile(
	`^(?:oss-([a-z]+-[a-z0-9-]+?)(?:-internal)?|([a-z]+-[a-z0-9-]+)\.oss)\.aliyuncs\.com$`)

// ossBucket matches valid OSS bucket names, but does not limit them to 63 bytes.
var ossBucket = regexp.MustCompile(`^[a-z0-9][a-z0-9-]+[a-z0-9]$`)

type ossService struct{ client *oss.Client }

// NewOSS returns the Service for OSS. Its requests go through transport.
func NewOSS(o OSS, transport http.RoundTripper) (Service, error) {
	o.Endpoint = cmp.Or(o.Endpoint, os.Getenv(ossEndpointEnv))
	o.Region = cmp.Or(o.Region, os.Getenv(ossRegionEnv))
	host, err := endpointHost("OSS", o.Endpoint, "oss-cn-hangzhou.aliyuncs.com")
	if err != nil {
		return nil, err
	}
	if m := regionInHost.FindStringSubmatch(host); m != nil && o.Region == "" {
		o.Region = m[1] + m[2]
	}
	if o.Endpoint == "" && o.Region == "" {
		return nil, fmt.Errorf("neither the endpoint nor the region of the bucket is known; give one, or set %s or %s",
			ossEndpointEnv, ossRegionEnv)
	}
	config := oss.NewConfig().
		WithRetryer(correctClock{}).
		WithUsePathStyle(o.PathStyle || host == "localhost"). // the SDK itself does this with an IP address
		WithCredentialsProvider(ossProvider(o.Credentials)).
		WithHttpClient(sameServer(transport))
	if o.Endpoint != "" {
		config.WithEndpoint(o.Endpoint)
	}
	if o.Region != "" {
		config.WithRegion(o.Region)
	} else {
		config.WithSignatureVersion(oss.SignatureVersionV1) // V4 signatures need the region
	}
	return ossService{oss.NewClient(config)}, nil
}

func ossProvider(f func(context.Context) (id, secret, token string, err error)) credentials.CredentialsProvider {
	if f == nil {
		return credentials.NewAnonymousCredentialsProvider()
	}
	return credentials.CredentialsProviderFunc(func(ctx context.Context) (credentials.Credentials, error) {
		id, secret, token, err := f(ctx)
		if err == nil && (id == "" || secret == "") {
			err = &Invalid{errors.New("there are no credentials for OSS; set an access key")}
		}
		return credentials.Credentials{AccessKeyID: id, AccessKeySecret: secret, SecurityToken: token}, err
	})
}

// correctClock makes the SDK retry only requests refused for a wrong clock, after it has corrected its clock.
type correctClock struct{}

func (correctClock) MaxAttempts() int                             { return 2 }
func (correctClock) RetryDelay(int, error) (time.Duration, error) { return 0, nil }
func (correctClock) IsErrorRetryable(err error) bool {
	var service *oss.ServiceError
	return errors.As(err, &service) && service.Code == skewedCode
}

// skewedCode is the error code of both services for a request with a wrong time.
const skewedCode = "RequestTimeTooSkewed"

// plainOSS converts an error of the SDK, whose text has several lines, to an error of this package. nil remains nil.
func plainOSS(err error) error {
	if service, ok := errors.AsType[*oss.ServiceError](err); ok {
		return &Error{Status: service.StatusCode, Code: service.Code, Message: oneLine(service.Message),
			RetryAfter: RetryAfter(service.Headers)}
	}
	for {
		operation, ok := err.(*oss.OperationError)
		if !ok {
			break
		}
		err = operation.Unwrap()
	}
	if errors.As(err, new(oss.InvalidParamError)) {
		return &Invalid{err}
	}
	return err
}

// plainBodies keeps OSS from compressing text, which it does for clients that accept gzip, as Go's client does.
var plainBodies = oss.RequestCommon{Headers: map[string]string{"Accept-Encoding": "identity"}}

func (ossService) Scheme() string { return "oss" }

func (s ossService) List(ctx context.Context, bucket, prefix, token string, most int) (Page, error) {
	most = cmp.Or(most, 1000) // the service's default is 100
	result, err := s.client.ListObjectsV2(ctx, &oss.ListObjectsV2Request{
		Bucket: oss.Ptr(bucket), Prefix: ptrOrNil(prefix), ContinuationToken: ptrOrNil(token), MaxKeys: int32(most),
	})
	if err != nil {
		return Page{}, plainOSS(err)
	}
	page := Page{More: result.IsTruncated, Token: oss.ToString(result.NextContinuationToken)}
	for _, o := range result.Contents {
		page.Objects = append(page.Objects, Object{Key: oss.ToString(o.Key), Size: o.Size, ETag: oss.ToString(o.ETag),
			Modified: oss.ToTime(o.LastModified), Link: oss.ToString(o.Type) == "Symlink"})
	}
	return page, nil
}

func (s ossService) Head(ctx context.Context, bucket, key string) (Object, error) {
	result, err := s.client.HeadObject(ctx, &oss.HeadObjectRequest{Bucket: oss.Ptr(bucket), Key: oss.Ptr(key),
		RequestCommon: plainBodies})
	if err != nil {
		return Object{}, plainOSS(err)
	}
	return Object{Key: key, Size: result.ContentLength, ETag: oss.ToString(result.ETag),
		Modified: oss.ToTime(result.LastModified)}, nil
}

func (s ossService) Get(ctx context.Context, bucket, key string, off, n int64, match string) (*Answer, error) {
	result, err := s.client.GetObject(ctx, &oss.GetObjectRequest{
		Bucket: oss.Ptr(bucket), Key: oss.Ptr(key), IfMatch: ptrOrNil(match), RequestCommon: plainBodies,
		// Without RangeBehavior, OSS returns the whole object for a range that ends beyond the object.
		Range: oss.Ptr(RangeOf(off, n)), RangeBehavior: oss.Ptr("standard"),
	})
	if err != nil {
		return nil, other(plainOSS(err))
	}
	return &Answer{Status: result.StatusCode, Header: result.Headers, Length: result.ContentLength, Body: result.Body}, nil
}

// other returns ErrOther for a response that says that If-Match failed, and other errors unchanged.
func other(err error) error {
	if answer, ok := errors.AsType[*Error](err); ok && answer.Status == http.StatusPreconditionFailed {
		return ErrOther
	}
	return err
}

func (s ossService) Put(ctx context.Context, bucket, key string, body io.ReadSeeker, absent bool) error {
	request := &oss.PutObjectRequest{Bucket: oss.Ptr(bucket), Key: oss.Ptr(key), Body: body}
	if absent {
		request.ForbidOverwrite = oss.Ptr("true")
	}
	_, err := s.client.PutObject(ctx, request)
	err = plainOSS(err)
	if answer, ok := errors.AsType[*Error](err); ok && absent && answer.Code == "FileAlreadyExists" {
		return ErrExists
	}
	return err
}

func (s ossService) Delete(ctx context.Context, bucket, key string) error {
	_, err := s.client.DeleteObject(ctx, &oss.DeleteObjectRequest{Bucket: oss.Ptr(bucket), Key: oss.Ptr(key)})
	return plainOSS(err)
}
