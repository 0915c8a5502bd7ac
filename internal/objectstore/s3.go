package objectstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/encoding/httpbinding"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// S3 configures the access to objects with s3:// addresses. Keys come from the environment, ~/.aws or a role.
type S3 struct {
	Endpoint string // "" means AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL or AWS itself; the default scheme is https
	Region   string // "" means AWS_REGION, or us-east-1 if there is an endpoint: compatible stores ignore the region
}

// s3Bucket matches S3 bucket names, including names under older rules, but does not limit them to 63 bytes.
var s3Bucket = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]+[A-Za-z0-9]$`)

var (
	s3InHost    = regexp.MustCompile(`^[a-z0-9][a-z0-9-]+[a-z0-9]$`)    // buckets that the certificate of *.HOST covers
	s3Partition = regexp.MustCompile(`^(cn|eusc|us-iso[bf]?|eu-isoe)-`) // regions outside AWS's standard partition
)

var s3Domains = map[string]string{"": "amazonaws.com", "cn-": "amazonaws.com.cn", "eusc-": "amazonaws.eu",
	"us-iso-":  "c2s.ic.gov",
	"us-isob-": "sc2s.sgov.gov", "us-isof-": "csp.hci.ic.gov", "eu-isoe-": "cloud.adc-e.uk"}

// s3Service makes its five requests without the SDK's S3 client, whose compilation took a tenth of a first build.
type s3Service struct {
	scheme, host, region string
	inHost               bool // the bucket is in the host name
	keys                 aws.CredentialsProvider
	hadKeys              atomic.Bool // so that failing to renew them is worth a retry
	client               smithyhttp.ClientHandler
	signer               *v4.Signer
	ahead                atomic.Int64 // nanoseconds by which the service's clock is ahead; set after a refusal
}

// NewS3 returns the Service for S3 or a compatible store. Its requests respect AWS_CA_BUNDLE and follow no redirects.
func NewS3(ctx context.Context, o S3) (Service, error) {
	// Many workers read splits at the same time.
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.MaxIdleConnsPerHost = 64 })
	given, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(client))
	if err != nil {
		return nil, fmt.Errorf("read the AWS configuration: %w", err)
	}
	// The SDK's client respects AWS_CA_BUNDLE, but follows redirects with status 307 or 308 to any host.
	if found, ok := given.HTTPClient.(*awshttp.BuildableClient); ok {
		client = found
	}
	s := &s3Service{scheme: "https", region: cmp.Or(o.Region, given.Region), inHost: true, keys: given.Credentials,
		client: smithyhttp.NewClientHandlerWithOptions(sameServer(client.GetTransport())),
		signer: v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })} // only S3 signs paths unescaped
	fips, err1 := s3Setting(ctx, given.ConfigSources, s3Source.GetUseFIPSEndpoint)
	dual, err2 := s3Setting(ctx, given.ConfigSources, s3Source.GetUseDualStackEndpoint)
	configured, err3 := s3Configured(ctx, given)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("read the AWS configuration: %w", err)
	}
	endpoint := cmp.Or(o.Endpoint, configured)
	switch {
	case endpoint == "" && s.region == "":
		return nil, errors.New("the bucket's region is unknown; set AWS_REGION, or AWS_ENDPOINT_URL if the store is not AWS")
	case endpoint == "":
		if s.region == "aws-global" {
			s.region = "us-east-1"
		}
		s.host = "s3"
		if fips == aws.FIPSEndpointStateEnabled {
			s.host += "-fips"
		}
		if dual == aws.DualStackEndpointStateEnabled {
			s.host += ".dualstack"
		}
		s.host += "." + s.region + "." + s3Domains[s3Partition.FindString(s.region)]
		return s, nil
	case fips == aws.FIPSEndpointStateEnabled:
		return nil, errors.New("AWS_USE_FIPS_ENDPOINT asks for an AWS endpoint, but another is set; remove one setting")
	}
	host, err := endpointHost("S3", endpoint, "https://minio.example:9000")
	if err != nil {
		return nil, err
	}
	if scheme, rest, ok := strings.Cut(endpoint, "://"); ok {
		s.scheme, endpoint = scheme, rest
	}
	s.host = strings.TrimRight(endpoint, "/")
	s.inHost = strings.HasSuffix(host, ".amazonaws.com") || strings.HasSuffix(host, ".aliyuncs.com")
	s.region = cmp.Or(s.region, "us-east-1")
	return s, nil
}

// s3Source is a source of the configuration: the environment or a file.
type s3Source interface {
	GetServiceBaseEndpoint(ctx context.Context, service string) (string, bool, error)
	GetUseFIPSEndpoint(context.Context) (aws.FIPSEndpointState, bool, error)
	GetUseDualStackEndpoint(context.Context) (aws.DualStackEndpointState, bool, error)
}

// s3Setting returns a setting from the first source that has it.
func s3Setting[T any](ctx context.Context, sources []any,
	ask func(s3Source, context.Context) (T, bool, error)) (value T, err error) {
	for _, source := range sources {
		if s, ok := source.(s3Source); ok {
			if value, found, err := ask(s, ctx); found || err != nil {
				return value, err
			}
		}
	}
	return value, nil
}

// s3Configured returns the configured endpoint. S3's own one precedes the general one; the environment precedes files.
func s3Configured(ctx context.Context, given aws.Config) (string, error) {
	_, all := os.LookupEnv("AWS_ENDPOINT_URL")
	_, own := os.LookupEnv("AWS_ENDPOINT_URL_S3")
	ignored, _, err := config.GetIgnoreConfiguredEndpoints(ctx, given.ConfigSources)
	if err != nil || ignored || all && !own {
		return aws.ToString(given.BaseEndpoint), err
	}
	endpoint, err := s3Setting(ctx, given.ConfigSources, func(s s3Source, ctx context.Context) (string, bool, error) {
		return s.GetServiceBaseEndpoint(ctx, "S3")
	})
	return cmp.Or(endpoint, aws.ToString(given.BaseEndpoint)), err
}

// address returns the URL of an object or, if the key is empty, of a bucket.
func (s *s3Service) address(bucket, key string, query url.Values) *url.URL {
	u := &url.URL{Scheme: s.scheme, Host: s.host, Path: "/" + key, RawQuery: query.Encode()}
	switch {
	case s.inHost && s3InHost.MatchString(bucket):
		u.Host = bucket + "." + s.host
	case key == "":
		u.Path = "/" + bucket
	default:
		u.Path = "/" + bucket + "/" + key
	}
	u.RawPath = httpbinding.EscapePath(u.Path, false)
	return u
}

// do sends a request and returns a successful response. If the time is refused, do tries again with the service's time.
func (s *s3Service) do(ctx context.Context, method, bucket, key string, query url.Values, header map[string]string,
	body io.ReadSeeker) (*http.Response, error) {
	if key == "" && query == nil {
		return nil, &Invalid{errors.New("the object has no key")} // the request would be for the bucket
	}
	known := s.ahead.Load()
	answer, err := s.once(ctx, method, s.address(bucket, key, query), header, body)
	if err != nil && s.ahead.Load() != known {
		answer, err = s.once(ctx, method, s.address(bucket, key, query), header, body)
	}
	return answer, err
}

func (s *s3Service) once(ctx context.Context, method string, address *url.URL, header map[string]string,
	body io.ReadSeeker) (*http.Response, error) {
	request := smithyhttp.NewStackRequest().(*smithyhttp.Request)
	request.Method, request.URL = method, address
	for name, value := range header {
		request.Header.Set(name, value)
	}
	sum := sha256.New()
	if body != nil {
		_, err1 := body.Seek(0, io.SeekStart)
		_, err2 := io.Copy(sum, body)
		_, err3 := body.Seek(0, io.SeekStart)
		stream, err4 := request.SetStream(body)
		if err := errors.Join(err1, err2, err3, err4); err != nil {
			return nil, &Invalid{err}
		}
		request = stream
		if request.ContentLength >= 2<<20 {
			request.Header.Set("Expect", "100-continue") // so that the body is not sent if the request is refused
		}
	}
	keys, err := s.keys.Retrieve(ctx)
	switch {
	case err == nil:
		s.hadKeys.Store(true)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case s.hadKeys.Load():
		return nil, fmt.Errorf("renew the credentials for S3: %w", err)
	default:
		return nil, &Invalid{fmt.Errorf("there are no credentials for S3; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "+
			"AWS_PROFILE, or give the pod a role: %w", err)}
	}
	hash := hex.EncodeToString(sum.Sum(nil))
	request.Header.Set("X-Amz-Content-Sha256", hash)
	if err := s.signer.SignHTTP(ctx, keys, request.Request, hash, "s3", s.region,
		time.Now().Add(time.Duration(s.ahead.Load()))); err != nil {
		return nil, &Invalid{err}
	}
	request.Header.Set("Accept-Encoding", "identity") // prevents compression; not signed, because gateways may change it
	result, _, err := s.client.Handle(ctx, request)
	if err != nil {
		if plain, ok := errors.AsType[*url.Error](err); ok {
			err = plain // drop the SDK's wrapper
		}
		return nil, cmp.Or(ctx.Err(), err)
	}
	answer := result.(*smithyhttp.Response).Response
	if answer.StatusCode >= 200 && answer.StatusCode < 300 {
		return answer, nil
	}
	defer finish(answer)
	refused := &Error{Status: answer.StatusCode, RetryAfter: RetryAfter(answer.Header)}
	var said struct {
		XMLName       xml.Name `xml:"Error"`
		Code, Message string
	}
	if xml.NewDecoder(answer.Body).Decode(&said) == nil {
		refused.Code, refused.Message = said.Code, oneLine(said.Message)
	}
	if region := answer.Header.Get("X-Amz-Bucket-Region"); region != "" && refused.Status < 400 {
		refused.Message = "the bucket is in the region " + region
	}
	// A refused HEAD has no error code, so compare the clocks. Services allow a difference of 15 minutes.
	if date, err := http.ParseTime(answer.Header.Get("Date")); err == nil && refused.Status == http.StatusForbidden {
		if ahead := time.Until(date); (ahead - time.Duration(s.ahead.Load())).Abs() > 5*time.Minute {
			s.ahead.Store(int64(ahead))
		}
	}
	return nil, refused
}

// finish reads a response to its end, so that its connection can be reused.
func finish(answer *http.Response) {
	_, _ = io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
}

func (*s3Service) Scheme() string { return "s3" }

func (s *s3Service) List(ctx context.Context, bucket, prefix, token string, most int) (Page, error) {
	query := url.Values{"list-type": {"2"}, "encoding-type": {"url"}} // XML cannot hold every key
	if prefix != "" {
		query.Set("prefix", prefix)
	}
	if token != "" {
		query.Set("continuation-token", token)
	}
	if most > 0 {
		query.Set("max-keys", strconv.Itoa(most))
	}
	answer, err := s.do(ctx, http.MethodGet, bucket, "", query, nil, nil)
	if err != nil {
		return Page{}, err
	}
	defer finish(answer)
	var result struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		EncodingType          string
		IsTruncated           bool
		NextContinuationToken string
		Contents              []struct {
			Key, ETag    string
			Size         int64
			LastModified time.Time
		}
	}
	if err := xml.NewDecoder(answer.Body).Decode(&result); err != nil {
		return Page{}, fmt.Errorf("read a page of the listing: %w", err)
	}
	page := Page{More: result.IsTruncated, Token: result.NextContinuationToken}
	for _, o := range result.Contents {
		if result.EncodingType == "url" {
			if o.Key, err = url.QueryUnescape(o.Key); err != nil {
				return Page{}, &Invalid{fmt.Errorf("the service lists a key that cannot be decoded: %w", err)}
			}
		}
		page.Objects = append(page.Objects, Object{Key: o.Key, Size: o.Size, ETag: o.ETag, Modified: o.LastModified})
	}
	return page, nil
}

func (s *s3Service) Head(ctx context.Context, bucket, key string) (Object, error) {
	answer, err := s.do(ctx, http.MethodHead, bucket, key, nil, nil, nil)
	if err != nil {
		return Object{}, err
	}
	defer finish(answer)
	modified, _ := http.ParseTime(answer.Header.Get("Last-Modified"))
	return Object{Key: key, Size: max(answer.ContentLength, 0), ETag: answer.Header.Get("ETag"), Modified: modified}, nil
}

func (s *s3Service) Get(ctx context.Context, bucket, key string, off, n int64, match string) (*Answer, error) {
	header := map[string]string{"Range": RangeOf(off, n)}
	if match != "" {
		header["If-Match"] = match
	}
	got, err := s.do(ctx, http.MethodGet, bucket, key, nil, header, nil)
	if err != nil {
		return nil, other(err)
	}
	answer := &Answer{Status: http.StatusOK, Header: http.Header{}, Length: got.ContentLength, Body: got.Body}
	if tag := got.Header.Get("ETag"); tag != "" {
		answer.Header.Set("ETag", tag)
	}
	if part := got.Header.Get("Content-Range"); part != "" {
		answer.Status = http.StatusPartialContent
		answer.Header.Set("Content-Range", part)
	}
	return answer, nil
}

func (s *s3Service) Put(ctx context.Context, bucket, key string, body io.ReadSeeker, absent bool) error {
	header := map[string]string{"Content-Type": "application/octet-stream"}
	if absent {
		header["If-None-Match"] = "*"
	}
	answer, err := s.do(ctx, http.MethodPut, bucket, key, nil, header, body)
	if err == nil {
		finish(answer)
		return nil
	}
	if absent && errors.Is(other(err), ErrOther) {
		return ErrExists
	}
	return err
}

func (s *s3Service) Delete(ctx context.Context, bucket, key string) error {
	answer, err := s.do(ctx, http.MethodDelete, bucket, key, nil, nil, nil)
	if err == nil {
		finish(answer)
	}
	return err
}
