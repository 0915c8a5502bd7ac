package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// Class is what an error of the service means for the request that met it.
type Class uint8

// The classes, after Tablestore's error table and the documented retry rules.
const (
	// Permanent: the request will be refused however often it is sent.
	Permanent Class = iota
	// Throttled: over capacity; refused before it was applied.
	Throttled
	// Unavailable: the partition, the table or the server cannot take the request now; not applied.
	Unavailable
	// Ambiguous: the request may have been applied, now or later.
	Ambiguous
	// Content: the request was refused for what is in it; one bad row spoils the others.
	Content
	// Fatal: no request will succeed: keys, permissions, a missing table.
	Fatal
	// Canceled: the run was stopped; otherwise like Ambiguous.
	Canceled
)

var classes = map[string]Class{
	"OTSNotEnoughCapacityUnit": Throttled,
	"OTSCapacityUnitExhausted": Throttled,
	"OTSServerBusy":            Throttled,
	"OTSStorageServerBusy":     Throttled,
	"OTSOperationThrottled":    Throttled,

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
}

// tooFrequent is the one message that makes OTSQuotaExhausted worth another try.
const tooFrequent = "Too frequent table operations."

// ClassifyCode returns the class of an error code of the service, as it stands in a row's answer.
func ClassifyCode(code, message string) Class {
	if code == "OTSQuotaExhausted" && message == tooFrequent {
		return Unavailable
	}
	return classes[code] // a code nobody knows is Permanent
}

// NotServingCode reports whether the code means that the partition, the table or the server does not serve at the moment:
// whatever is sent there meets the same. OTSServerUnavailable may come after the request was applied.
func NotServingCode(code string) bool {
	switch code {
	case "OTSPartitionUnavailable", "OTSTableNotReady", "OTSServerUnavailable":
		return true
	}
	return false
}

// NotServing is NotServingCode for an error that the SDK's client returned for a whole request.
func NotServing(err error) bool {
	var ots *tablestore.OtsError
	return errors.As(err, &ots) && NotServingCode(ots.Code)
}

// Classify returns the class of an error that the SDK's client returned for a whole request.
func Classify(err error) Class {
	var ots *tablestore.OtsError
	if errors.As(err, &ots) {
		return classifyAnswer(ots)
	}
	if errors.Is(err, context.Canceled) {
		return Canceled
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return Unavailable // nothing was sent
	}
	return Ambiguous // cut off, timed out, or an answer that cannot be read
}

func classifyAnswer(err *tablestore.OtsError) Class {
	if c := ClassifyCode(err.Code, err.Message); c != Permanent {
		return c
	}
	switch {
	case err.HttpStatusCode >= http.StatusInternalServerError:
		return Ambiguous // a proxy's page, or a code that nobody knows
	case err.Code != tablestore.OTS_CLIENT_UNKNOWN:
		return Permanent
	}
	switch err.HttpStatusCode { // said by whoever stands before the service
	case http.StatusTooManyRequests:
		return Throttled
	case http.StatusRequestTimeout:
		return Ambiguous
	}
	return Permanent
}

// Describe makes one line of an error for a user: what, and what to do where that is known. Request ids are kept:
// support asks for them.
func Describe(err error) string {
	if canceled := new(stopped); errors.As(err, &canceled) {
		return OneLine(canceled.cause.Error())
	}
	var ots *tablestore.OtsError
	if !errors.As(err, &ots) {
		var dns *net.DNSError
		if errors.As(err, &dns) {
			return fmt.Sprintf("cannot find host %s; check --endpoint", dns.Name)
		}
		var dial *net.OpError
		if errors.As(err, &dial) && dial.Op == "dial" {
			return fmt.Sprintf("cannot connect to %v: %v; check --endpoint and the network", dial.Addr, dial.Err)
		}
		return OneLine(err.Error())
	}
	if strings.HasPrefix(strings.TrimSpace(ots.Message), "<") || ots.Code == tablestore.OTS_CLIENT_UNKNOWN {
		return fmt.Sprintf("the endpoint does not answer as Tablestore does (HTTP %d: %.80s); check --endpoint", ots.HttpStatusCode, OneLine(ots.Message))
	}
	text := fmt.Sprintf("%s: %s", ots.Code, OneLine(ots.Message))
	if ots.RequestId != "" {
		text += fmt.Sprintf(" (HTTP %d, request %s)", ots.HttpStatusCode, ots.RequestId)
	}
	switch ots.Code {
	case "OTSAuthFailed":
		text += "; check the access key, --instance and this machine's clock"
	}
	return text
}

// stopped is the error of a request that ended because the run was stopped.
type stopped struct{ cause error }

func (s *stopped) Error() string   { return s.cause.Error() }
func (s *stopped) Unwrap() []error { return []error{context.Canceled, s.cause} }

// OneLine makes text fit for one line of a terminal or a log.
func OneLine(text string) string {
	text = strings.ReplaceAll(strings.TrimSpace(text), "\n", "; ")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }), " ")
	if len(text) > 500 {
		text = text[:500] + "…"
	}
	return strings.TrimSpace(text)
}
