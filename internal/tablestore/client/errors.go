package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// Class says what an error means for a request or row.
type Class uint8

// The classes, according to Tablestore's error table and its documented retry rules.
const (
	// Permanent means that the request will always be refused. It was not applied.
	Permanent Class = iota
	// Throttled means that a capacity is exceeded. The request was not applied.
	Throttled
	// Unavailable means that the partition, table or server cannot take the request now. It was not applied.
	Unavailable
	// Ambiguous means that the request may have been applied or may be applied later.
	Ambiguous
	// Content means that the content was refused. The service refuses all rows of a request for a single bad row.
	Content
	// Fatal means that no request can succeed, because of the keys, a permission or a missing table.
	Fatal
	// Canceled means that the run was stopped. The outcome is Ambiguous.
	Canceled
	// Unrecognized means an undocumented code. The outcome is Ambiguous.
	Unrecognized
)

// Passes reports whether errors of the class are temporary: the same request may succeed later.
func (c Class) Passes() bool {
	return c == Throttled || c == Unavailable || c == Ambiguous || c == Unrecognized
}

// Open reports whether the request's outcome is unknown.
func (c Class) Open() bool { return c == Ambiguous || c == Unrecognized || c == Canceled }

// classes maps the documented codes to classes. After any other code, the outcome of a request or a row is unknown.
var classes = map[string]Class{
	"OTSNotEnoughCapacityUnit": Throttled,
	"OTSCapacityUnitExhausted": Throttled,
	"OTSFlowControl":           Throttled,
	"OTSServerBusy":            Throttled, // see MayHaveApplied
	"OTSStorageServerBusy":     Throttled, // see MayHaveApplied
	"OTSOperationThrottled":    Throttled, // see MayHaveApplied

	"OTSPartitionUnavailable":                    Unavailable,
	"OTSTableNotReady":                           Unavailable,
	"OTSRowOperationConflict":                    Unavailable,
	"OTSTooFrequentReservedThroughputAdjustment": Unavailable,

	"OTSTimeout":             Ambiguous,
	"OTSInternalServerError": Ambiguous,
	"OTSServerUnavailable":   Ambiguous,
	"OTSRequestTimeout":      Ambiguous,

	"OTSParameterInvalid":      Content,
	"OTSInvalidPK":             Content,
	"OTSRequestBodyTooLarge":   Content,
	"OTSOutOfRowSizeLimit":     Content,
	"OTSOutOfColumnCountLimit": Content,

	"OTSAuthFailed":           Fatal,
	"OTSNoPermissionAccess":   Fatal,
	"OTSPermissionDenied":     Fatal,
	"OTSObjectNotExist":       Fatal,
	"OTSMethodNotAllowed":     Fatal,
	"OTSUnsupportedOperation": Fatal,
	"OTSMissingHeader":        Fatal,
	"OTSQuotaExhausted":       Fatal, // see tooFrequent

	"OTSConditionCheckFail":            Permanent,
	"OTSObjectAlreadyExist":            Permanent,
	"OTSForbiddenUpdateCapacityUnit":   Permanent,
	"OTSOutOfTransactionDataSizeLimit": Permanent,
	"OTSDataOutOfRange":                Permanent,
	"OTSSessionNotExist":               Permanent,
	"OTSSessionBusy":                   Permanent,
	"OTSMetaNotMatch":                  Permanent,
}

// tooFrequent is the beginning of the only message of OTSQuotaExhausted for which a retry makes sense.
const tooFrequent = "Too frequent table operations"

// ClassifyCode returns the class of an error code and message in the response for a row.
func ClassifyCode(code, message string) Class {
	if code == "OTSQuotaExhausted" && strings.HasPrefix(strings.TrimSpace(message), tooFrequent) {
		return Unavailable
	}
	if indexRefused(message) {
		return Fatal
	}
	if c, known := classes[code]; known {
		return c
	}
	return Unrecognized
}

// InstanceThrottled reports whether a throttling code concerns the whole instance rather than a partition.
func InstanceThrottled(code string) bool { return code == "OTSFlowControl" }

// MayHaveApplied reports whether a row refused with a throttling code may nevertheless have been applied: for these
// codes, the documentation does not say. This matters for rows that must not be applied twice.
func MayHaveApplied(code string) bool {
	return slices.Contains([]string{"OTSServerBusy", "OTSStorageServerBusy", "OTSOperationThrottled"}, code)
}

// NotServingCode reports whether the code means that the partition, table or server cannot take any requests now. With
// OTSServerUnavailable, the request may have been applied.
func NotServingCode(code string) bool {
	return slices.Contains([]string{"OTSPartitionUnavailable", "OTSTableNotReady", "OTSServerUnavailable"}, code)
}

// NotServing is like NotServingCode for an error of the SDK's client for a whole request.
func NotServing(err error) bool {
	u := new(unsigned)
	return NotServingCode(codeOf(err)) || errors.As(err, &u) && u.keys
}

// Classify returns the class of an error of the SDK's client or a Sender for a whole request.
func Classify(err error) Class {
	if unsent, refused := new(notSent), new(keysRefused); errors.As(err, &unsent) || errors.As(err, &refused) {
		return Unavailable
	}
	if ots, ok := errors.AsType[*tablestore.OtsError](err); ok {
		return classifyAnswer(ots)
	}
	if errors.Is(err, context.Canceled) {
		return Canceled
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return Unavailable // no byte was sent
	}
	return Ambiguous // cut off, timed out, or an unreadable response
}

// classifyAnswer goes by the code if it is documented, and otherwise by the status. A proxy's page has no code.
func classifyAnswer(err *tablestore.OtsError) Class {
	c := ClassifyCode(err.Code, err.Message)
	if c == Unrecognized && (err.Code == tablestore.OTS_CLIENT_UNKNOWN ||
		err.HttpStatusCode >= http.StatusInternalServerError) {
		return Ambiguous
	}
	return c
}

// SlowDown reports whether a response's code or status asks for fewer requests. The request may have been applied.
func SlowDown(err error) bool {
	var ots *tablestore.OtsError
	if u := new(unsigned); errors.As(err, &u) && u.says != nil && ClassifyCode(u.says.Code, u.says.Message) == Throttled {
		return true
	}
	return errors.As(err, &ots) && (ots.HttpStatusCode == http.StatusTooManyRequests ||
		ClassifyCode(ots.Code, ots.Message) == Throttled)
}

// TimedOut reports whether a request timed out without progress. The service has had it for that time, or not at all.
func TimedOut(err error) bool {
	var ots *tablestore.OtsError
	var late interface{ Timeout() bool }
	return !errors.As(err, &ots) && errors.As(err, &late) && late.Timeout()
}

// TooLarge reports whether the service or a gateway refused a request because of its size.
func TooLarge(err error) bool {
	var ots *tablestore.OtsError
	return !Unsettled(err) && errors.As(err, &ots) && (ots.HttpStatusCode == http.StatusRequestEntityTooLarge ||
		ots.Code == "OTSRequestBodyTooLarge")
}

// CutWhileSending reports whether the connection broke while a request was sent, as when a gateway refuses a large one.
func CutWhileSending(err error) bool {
	return errors.As(err, new(*cutOff))
}

type cutOff struct{ cause error }

func (c *cutOff) Error() string {
	return "the connection broke while the request was being sent: " + c.cause.Error()
}
func (c *cutOff) Unwrap() error { return c.cause }

type notSent struct{ cause error }

// NotSent wraps the error of a request that was not sent, so that none of its rows was applied.
func NotSent(cause error) error { return &notSent{cause} }

func (n *notSent) Error() string { return n.cause.Error() }
func (n *notSent) Unwrap() error { return n.cause }

// boundVPC is part of the message of an instance that accepts requests from one network only.
const boundVPC = "can only be accessed from the binded VPC"

// Denied reports whether an error means that the access key lacks a permission.
func Denied(err error) bool {
	return slices.Contains([]string{"OTSNoPermissionAccess", "OTSPermissionDenied", "OTSAuthFailed"}, codeOf(err))
}

// untrusted reports whether an error means that this machine does not trust the endpoint's certificate.
func untrusted(err error) bool {
	return errors.As(err, new(*tls.CertificateVerificationError))
}

// Refused reports whether an error will last: it concerns the keys, a permission, the certificate, a dropped table or a
// quota.
func Refused(err error) bool {
	var ots *tablestore.OtsError
	u := new(unsigned)
	return Denied(err) || errors.As(err, &u) && u.keys || untrusted(err) || IsNoTable(err) ||
		errors.As(err, new(*ReplacedError)) ||
		errors.As(err, &ots) && ots.Code == "OTSQuotaExhausted" && ClassifyCode(ots.Code, ots.Message) == Fatal
}

// Needed wraps the error, if any, of an operation that a load needs besides writing. It names a missing permission.
func Needed(operation, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case Denied(err):
		return fmt.Errorf("%s on table %s: %w; it needs the permission ots:%s", operation, name, &Error{err}, operation)
	}
	return fmt.Errorf("%s on table %s: %w", operation, name, &Error{err})
}

// Describe describes an error to users in one line: what happened, the request ID and, if known, what to do.
func Describe(err error) string {
	if canceled := new(stopped); errors.As(err, &canceled) {
		return OneLine(canceled.cause.Error())
	}
	if u := new(unsigned); errors.As(err, &u) && !u.ends {
		return u.Error()
	}
	if WrongScheme(err) {
		return "the endpoint expects TLS and got plain HTTP, or the reverse; swap http:// and https:// in --endpoint"
	}
	ots, ok := errors.AsType[*tablestore.OtsError](err)
	if !ok {
		if bad := new(tls.CertificateVerificationError); errors.As(err, &bad) {
			return fmt.Sprintf("the certificate of the endpoint is not trusted: %s; check --endpoint, or make this machine "+
				"trust its issuer (SSL_CERT_FILE names a file of trusted certificates)", OneLine(bad.Err.Error()))
		}
		if dns, ok := errors.AsType[*net.DNSError](err); ok {
			return fmt.Sprintf("cannot find host %s; check --endpoint", dns.Name)
		}
		if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
			return fmt.Sprintf("cannot connect to %v: %v; check --endpoint and the network", dial.Addr, dial.Err)
		}
		return OneLine(err.Error())
	}
	if isPage(ots) {
		return fmt.Sprintf("the endpoint does not answer as Tablestore does (HTTP %d: %.80s); check --endpoint",
			ots.HttpStatusCode, OneLine(ots.Message))
	}
	text := fmt.Sprintf("%s: %s", ots.Code, OneLine(ots.Message))
	if ots.RequestId != "" {
		text += fmt.Sprintf(" (HTTP %d, request %s)", ots.HttpStatusCode, ots.RequestId)
	}
	switch {
	case indexRefused(ots.Message):
		text += "; the table is a secondary index: write to its main table instead"
	case strings.Contains(ots.Message, boundVPC):
		text += "; the instance takes requests from its VPC only: use its VPC endpoint from there, or allow other networks"
	case ots.Code == "OTSAuthFailed" && strings.HasPrefix(ots.Message, "Mismatch between system time"):
		text += "; this machine's clock is too far from the service's: set it"
	case ots.Code == "OTSAuthFailed":
		text += "; check the access key, --instance and this machine's clock"
	}
	return text
}

// WrongScheme reports whether a plain HTTP request went to a TLS endpoint, or vice versa.
func WrongScheme(err error) bool {
	if ots, ok := errors.AsType[*tablestore.OtsError](err); ok {
		return isPage(ots) && ots.HttpStatusCode == http.StatusBadRequest && strings.Contains(ots.Message, "HTTPS")
	}
	for ; err != nil; err = errors.Unwrap(err) { // Error.Error would return Describe's text
		if slices.ContainsFunc(otherScheme, func(text string) bool { return strings.Contains(err.Error(), text) }) {
			return true
		}
	}
	return false
}

// otherScheme lists net/http's messages for a TLS alert in place of an HTTP response, and for a response without TLS.
var otherScheme = []string{
	"malformed HTTP response \"\\x15\\x03", "server gave HTTP response to HTTPS client",
	"first record does not look like a TLS handshake",
}

// isPage reports whether a response is a web page rather than Tablestore's.
func isPage(ots *tablestore.OtsError) bool {
	return strings.HasPrefix(strings.TrimSpace(ots.Message), "<") || ots.Code == tablestore.OTS_CLIENT_UNKNOWN
}

// stopped is the error of a request that ended because the run was stopped.
type stopped struct{ cause error }

func (s *stopped) Error() string   { return s.cause.Error() }
func (s *stopped) Unwrap() []error { return []error{context.Canceled, s.cause} }

// OneLine fits text into one line of a terminal or log. It removes the middle of a long text, because the beginning
// says what failed and the end says what to do.
func OneLine(text string) string {
	text = strings.ReplaceAll(strings.TrimSpace(text), "\n", "; ")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }), " ")
	const head, tail = 400, 200
	if len(text) > head+tail {
		text = strings.ToValidUTF8(text[:head], "") + "…" + strings.ToValidUTF8(text[len(text)-tail:], "")
	}
	return strings.TrimSpace(text)
}
