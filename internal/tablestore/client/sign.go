package client

import (
	"crypto/md5"
	"encoding/base64"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore/otsprotocol"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
)

// Names of headers in net/http's canonical form. The SDK writes them in lower case; the service ignores case.
const (
	headerUserAgent   = "User-Agent"
	headerDate        = "X-Ots-Date"
	headerAPIVersion  = "X-Ots-Apiversion"
	headerAccessKeyID = "X-Ots-Accesskeyid"
	headerInstance    = "X-Ots-Instancename"
	headerMD5         = "X-Ots-Contentmd5"
	headerToken       = "X-Ots-Ststoken"
	headerRequestID   = "X-Ots-Requestid"
	headerCompress    = "X-Ots-Request-Compress-Type"
	headerPlainSize   = "X-Ots-Request-Compress-Size"
	headerSignDate    = "X-Ots-Signdate"

	headerSignature     = "X-Ots-Signature"
	headerAuthorization = "Authorization"
	headerLocation      = "Location"
)

const (
	userAgent = "aliyun-tablestore-sdk-golang/4.0.2" // the same as the SDK's
	// The SDK's layout ends in .123Z, which package time takes for a date. The service checks only the seconds.
	dateLayout = "2006-01-02T15:04:05.000Z"
)

// signWith returns the signed headers of a request, given its body's MD5 and size before compression (0: uncompressed).
func (c *Connection) signWith(keys common.Credentials, uri, date string, sum [md5.Size]byte,
	was int) (http.Header, error) {
	header := http.Header{
		headerUserAgent:   {userAgent},
		headerDate:        {date},
		headerAPIVersion:  {tablestore.ApiVersion},
		headerAccessKeyID: {keys.GetAccessKeyID()},
		headerInstance:    {c.instance},
		headerMD5:         {base64.StdEncoding.EncodeToString(sum[:])},
	}
	if token := keys.GetSecurityToken(); token != "" {
		header[headerToken] = []string{token}
	}
	if was > 0 {
		header[headerCompress], header[headerPlainSize] = []string{"deflate"}, []string{strconv.Itoa(was)}
	}
	if _, v4 := keys.(common.CredentialsV4); !v4 && complete(header) {
		s := signerOf(keys)
		header[headerSignature] = []string{string(s.request(uri, header))}
		signers.Put(s)
		return header, nil
	}
	req := http.Request{Header: header}
	tablestore.AddExtraHeader(&req, keys)
	signature, err := tablestore.GetSignature(uri, http.MethodPost, keys, header)
	if err != nil {
		return nil, err
	}
	tablestore.AddSignatureHeader(&req, keys, signature)
	return header, nil
}

// complete reports whether a request has all headers to sign. If not, the SDK's signer returns the error users know.
func complete(header http.Header) bool {
	return !slices.ContainsFunc([]string{headerDate, headerAPIVersion, headerAccessKeyID, headerInstance, headerMD5},
		func(name string) bool { return header[name][0] == "" })
}

// requestBody reads a request's body from a sender's memory and records when the transport has finished with it.
type requestBody struct {
	rest     []byte
	progress func() // called when bytes are read; may be nil
	closed   atomic.Bool
	next     *requestBody // body for the transport's next attempt
}

func (b *requestBody) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.rest)
	if b.progress != nil {
		b.progress()
	}
	b.rest = b.rest[n:]
	return n, nil
}

// WriteTo writes the rest in one piece, which an engine in this process takes without a copy. (net/http uses Read.)
func (b *requestBody) WriteTo(w io.Writer) (int64, error) {
	if len(b.rest) == 0 {
		return 0, nil
	}
	n, err := w.Write(b.rest)
	if b.progress != nil {
		b.progress()
	}
	b.rest = b.rest[n:]
	return int64(n), err
}

func (b *requestBody) Close() error {
	b.closed.Store(true)
	return nil
}

func (b *requestBody) again(body []byte) *requestBody {
	next := &requestBody{rest: body, progress: b.progress}
	b.next = next
	return next
}

func (b *requestBody) isReleased() bool {
	for ; b != nil; b = b.next {
		if !b.closed.Load() {
			return false
		}
	}
	return true
}

// decodeError decodes the service's error message: code (field 1), required, and message (2).
func decodeError(b []byte) (code, message string, ok bool) {
	e := new(otsprotocol.Error)
	err := unmarshal(b, e)
	return e.GetCode(), e.GetMessage(), err == nil && e.Code != nil
}

// unmarshal decodes a protocol message, which may lack required fields.
func unmarshal(body []byte, to protoadapt.MessageV1) error {
	return proto.UnmarshalOptions{AllowPartial: true}.Unmarshal(body, protoadapt.MessageV2Of(to))
}
