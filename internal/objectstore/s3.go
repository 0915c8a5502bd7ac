package objectstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

// S3 says how objects of s3:// addresses are reached. Keys, and what is not said here, come from where the tools of AWS find
// them: the environment, the files in ~/.aws, the role of the pod or of the machine.
type S3 struct {
	Endpoint string // "" takes AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, and else AWS itself; without a scheme https
	Region   string // "" takes AWS_REGION; with an endpoint us-east-1 where none is known, as compatible stores ignore it
}

// s3Bucket is S3's rule for names of buckets of 3 to 63 bytes, and what older ones may have.
var s3Bucket = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]+[A-Za-z0-9]$`)

type s3Service struct{ client *s3.Client }

// NewS3 returns S3, or a store that is compatible with it. Its requests go through the transport of the SDK's own client, which
// heeds AWS_CA_BUNDLE, and follow no redirect.
func NewS3(ctx context.Context, o S3) (Service, error) {
	if _, err := endpointHost("S3", o.Endpoint, "https://minio.example:9000"); err != nil {
		return nil, err
	}
	given, err := config.LoadDefaultConfig(ctx,
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.MaxIdleConnsPerHost = 64 })), // splits are read by many
		config.WithRetryer(func() aws.Retryer { return correctS3Clock{} }),
		// Compatible stores do not know the checksums that newer clients add unasked.
		config.WithRequestChecksumCalculation(aws.RequestChecksumCalculationWhenRequired),
		config.WithResponseChecksumValidation(aws.ResponseChecksumValidationWhenRequired),
	)
	if err != nil {
		return nil, fmt.Errorf("read the configuration of AWS: %w", err)
	}
	if o.Region != "" {
		given.Region = o.Region
	}
	// The client that was found heeds AWS_CA_BUNDLE, but follows a redirect with 307 or 308 to any host.
	if found, ok := given.HTTPClient.(*awshttp.BuildableClient); ok {
		given.HTTPClient = sameServer(found.GetTransport())
	}
	var missing error
	client := s3.NewFromConfig(given, func(c *s3.Options) {
		if o.Endpoint != "" {
			endpoint := o.Endpoint
			if !strings.Contains(endpoint, "://") {
				endpoint = "https://" + endpoint
			}
			c.BaseEndpoint = &endpoint
		}
		if c.BaseEndpoint != nil {
			host, err := endpointHost("S3", *c.BaseEndpoint, "https://minio.example:9000")
			if err != nil {
				missing = err
			}
			c.UsePathStyle = !strings.HasSuffix(host, ".amazonaws.com") && !strings.HasSuffix(host, ".aliyuncs.com")
			c.Region = cmp.Or(c.Region, "us-east-1")
		}
		if c.Region == "" {
			missing = errors.New("the region of the bucket is not known; give --s3-region or set AWS_REGION, or name another store with --s3-endpoint or AWS_ENDPOINT_URL")
		}
	})
	if missing != nil {
		return nil, missing
	}
	return s3Service{client}, nil
}

// correctS3Clock makes the SDK repeat only what failed for a wrong clock, which it then knows.
type correctS3Clock struct{ aws.NopRetryer }

func (correctS3Clock) MaxAttempts() int                             { return 2 }
func (correctS3Clock) RetryDelay(int, error) (time.Duration, error) { return 0, nil }
func (correctS3Clock) IsErrorRetryable(err error) bool {
	var answer smithy.APIError
	return errors.As(err, &answer) && answer.ErrorCode() == skewedCode
}

// plainS3 makes an SDK's error one of ours.
func plainS3(err error) error {
	var (
		response  *awshttp.ResponseError
		answer    smithy.APIError
		operation *smithy.OperationError
		cancelled *aws.RequestCanceledError
	)
	errors.As(err, &answer)
	switch {
	case errors.As(err, &response) && response.HTTPResponse() != nil && response.HTTPStatusCode() >= 300:
		e := &Error{Status: response.HTTPStatusCode(), RetryAfter: RetryAfter(response.HTTPResponse().Header)}
		if answer != nil && answer.ErrorCode() != "UnknownError" {
			e.Code, e.Message = answer.ErrorCode(), oneLine(answer.ErrorMessage())
		}
		if region := response.HTTPResponse().Header.Get("X-Amz-Bucket-Region"); region != "" && e.Status < 400 {
			e.Message = "the bucket is in the region " + region
		}
		return e
	case errors.As(err, &cancelled) && cancelled.Unwrap() != nil:
		return cancelled.Unwrap()
	case errors.As(err, &operation):
		err = operation.Unwrap()
		if strings.Contains(err.Error(), "get identity: get credentials") {
			return &Invalid{errors.New("there are no credentials for S3; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or give the pod a role")}
		}
		var sent *smithy.SerializationError
		if errors.As(err, &sent) {
			return &Invalid{err}
		}
	}
	var address *url.Error
	if errors.As(err, &address) {
		return address // without what the SDK puts around it
	}
	return err
}

func (s3Service) Scheme() string { return "s3" }

func (s s3Service) List(ctx context.Context, bucket, prefix, token string, most int) (Page, error) {
	request := &s3.ListObjectsV2Input{Bucket: &bucket, Prefix: ptrOrNil(prefix), ContinuationToken: ptrOrNil(token),
		EncodingType: types.EncodingTypeUrl} // XML cannot hold every key
	if most > 0 {
		request.MaxKeys = aws.Int32(int32(most))
	}
	result, err := s.client.ListObjectsV2(ctx, request)
	if err != nil {
		return Page{}, plainS3(err)
	}
	page := Page{More: aws.ToBool(result.IsTruncated), Token: aws.ToString(result.NextContinuationToken)}
	for _, o := range result.Contents {
		key := aws.ToString(o.Key)
		if result.EncodingType == types.EncodingTypeUrl {
			if key, err = url.QueryUnescape(key); err != nil {
				return Page{}, &Invalid{fmt.Errorf("the service lists a key that cannot be decoded: %w", err)}
			}
		}
		page.Objects = append(page.Objects, Object{Key: key, Size: aws.ToInt64(o.Size), ETag: aws.ToString(o.ETag), Modified: aws.ToTime(o.LastModified)})
	}
	return page, nil
}

func (s s3Service) Head(ctx context.Context, bucket, key string) (Object, error) {
	result, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &bucket, Key: &key})
	if err != nil {
		return Object{}, plainS3(err)
	}
	return Object{Key: key, Size: aws.ToInt64(result.ContentLength), ETag: aws.ToString(result.ETag), Modified: aws.ToTime(result.LastModified)}, nil
}

func (s s3Service) Get(ctx context.Context, bucket, key string, off, n int64, match string) (*Answer, error) {
	result, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key, IfMatch: ptrOrNil(match), Range: aws.String(RangeOf(off, n))})
	if err != nil {
		return nil, other(plainS3(err))
	}
	answer := &Answer{Status: http.StatusOK, Header: http.Header{}, Length: -1, Body: result.Body}
	if result.ContentLength != nil {
		answer.Length = *result.ContentLength
	}
	if result.ETag != nil {
		answer.Header.Set("ETag", *result.ETag)
	}
	if result.ContentRange != nil {
		answer.Status = http.StatusPartialContent
		answer.Header.Set("Content-Range", *result.ContentRange)
	}
	return answer, nil
}

func (s s3Service) Put(ctx context.Context, bucket, key string, body io.ReadSeeker, absent bool) error {
	request := &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: body}
	if absent {
		request.IfNoneMatch = aws.String("*")
	}
	_, err := s.client.PutObject(ctx, request)
	if err == nil {
		return nil
	}
	err = plainS3(err)
	if absent && errors.Is(other(err), ErrOther) {
		return ErrExists
	}
	return err
}

func (s s3Service) Delete(ctx context.Context, bucket, key string) error {
	if _, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: &key}); err != nil {
		return plainS3(err)
	}
	return nil
}
