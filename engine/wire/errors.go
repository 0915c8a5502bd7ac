package wire

import (
	"fmt"
	"net/http"
)

// The engine's error codes. Clients should look at the code, never at the message.
const (
	CodeAuthFailed              = "OTSAuthFailed"
	CodeNoPermission            = "OTSNoPermissionAccess"
	CodeBodyTooLarge            = "OTSRequestBodyTooLarge"
	CodeMethodNotAllowed        = "OTSMethodNotAllowed"
	CodeParameterInvalid        = "OTSParameterInvalid"
	CodeUnsupported             = "OTSUnsupportedOperation"
	CodeInvalidPK               = "OTSInvalidPK"
	CodeConditionCheckFail      = "OTSConditionCheckFail"
	CodeObjectNotExist          = "OTSObjectNotExist"
	CodeObjectAlreadyExist      = "OTSObjectAlreadyExist"
	CodeInternalServerError     = "OTSInternalServerError"
	CodeServerBusy              = "OTSServerBusy"
	CodePartitionUnavailable    = "OTSPartitionUnavailable"
	CodeTimeout                 = "OTSTimeout"
	CodeServerUnavailable       = "OTSServerUnavailable"
	CodeNotEnoughCapacityUnit   = "OTSNotEnoughCapacityUnit"
	CodeCapacityUnitExhausted   = "OTSCapacityUnitExhausted"
	CodeRowOperationConflict    = "OTSRowOperationConflict"
	CodeTableNotReady           = "OTSTableNotReady"
	CodeQuotaExhausted          = "OTSQuotaExhausted"
	CodeTooFrequentReservation  = "OTSTooFrequentReservedThroughputAdjustment"
	CodeForbiddenUpdateCapacity = "OTSForbiddenUpdateCapacityUnit"
	CodeRequestTimeout          = "OTSRequestTimeout"
	CodeDataOutOfRange          = "OTSDataOutOfRange"
	CodeFlowControl             = "OTSFlowControl"
	CodeSessionNotExist         = "OTSSessionNotExist"
	CodeSessionBusy             = "OTSSessionBusy"
	CodeOutOfTransactionSize    = "OTSOutOfTransactionDataSizeLimit"
)

// known maps codes to their HTTP status and default message.
var known = map[string]struct {
	status  int
	message string
}{
	CodeAuthFailed:              {http.StatusForbidden, "The user has no privilege to access the instance."},
	CodeNoPermission:            {http.StatusForbidden, "You have no permission to access the requested resource."},
	CodeBodyTooLarge:            {http.StatusRequestEntityTooLarge, "The size of POST data is too large."},
	CodeMethodNotAllowed:        {http.StatusMethodNotAllowed, "Only POST method for requests is supported."},
	CodeParameterInvalid:        {http.StatusBadRequest, "Invalid parameter."},
	CodeUnsupported:             {http.StatusBadRequest, "This operation is not supported."},
	CodeInvalidPK:               {http.StatusBadRequest, "Primary key schema mismatch."},
	CodeConditionCheckFail:      {http.StatusForbidden, "Condition check failed."},
	CodeObjectNotExist:          {http.StatusNotFound, "Requested table does not exist."},
	CodeObjectAlreadyExist:      {http.StatusConflict, "Requested table already exists."},
	CodeInternalServerError:     {http.StatusInternalServerError, "Internal server error."},
	CodeServerBusy:              {http.StatusServiceUnavailable, "Server is busy."},
	CodePartitionUnavailable:    {http.StatusServiceUnavailable, "The partition is not available."},
	CodeTimeout:                 {http.StatusServiceUnavailable, "Operation timeout."},
	CodeServerUnavailable:       {http.StatusServiceUnavailable, "Server is not available."},
	CodeNotEnoughCapacityUnit:   {http.StatusForbidden, "Remaining capacity unit is not enough."},
	CodeCapacityUnitExhausted:   {http.StatusForbidden, "Capacity unit is not enough."},
	CodeRowOperationConflict:    {http.StatusConflict, "Data is being modified by the other request."},
	CodeTableNotReady:           {http.StatusNotFound, "The table is not ready."},
	CodeQuotaExhausted:          {http.StatusForbidden, "Number of tables exceeded the quota."},
	CodeTooFrequentReservation:  {http.StatusForbidden, "Capacity unit adjustment is too frequent."},
	CodeForbiddenUpdateCapacity: {http.StatusBadRequest, "Your instance is forbidden to update capacity unit."},
	CodeDataOutOfRange:          {http.StatusBadRequest, "Data out of scope of atomic."},
	CodeFlowControl:             {http.StatusTooManyRequests, "The requests have been throttled."},
	CodeRequestTimeout:          {http.StatusRequestTimeout, "Request timeout."},
	CodeSessionNotExist:         {http.StatusNotFound, "Session not exist or may be timeout."},
	CodeSessionBusy:             {http.StatusConflict, "Session is busy."},
	CodeOutOfTransactionSize:    {http.StatusBadRequest, "The total data size of the transaction exceeds the limit."},
}

// Error is the refusal of a whole request, with an HTTP status, or of one row of a batch.
type Error struct {
	Code    string
	Message string
	Status  int
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Fail returns an error with code's default message and status. An unknown code, from a fault plan, has status 503.
func Fail(code string) *Error {
	if k, ok := known[code]; ok {
		return &Error{code, k.message, k.status}
	}
	return &Error{code, code + ".", http.StatusServiceUnavailable}
}

// Failf is like Fail, but with its own message.
func Failf(code, format string, args ...any) *Error {
	e := Fail(code)
	e.Message = fmt.Sprintf(format, args...)
	return e
}

// Invalid returns an OTSParameterInvalid, the most frequent error.
func Invalid(format string, args ...any) *Error {
	return Failf(CodeParameterInvalid, format, args...)
}

// Unsupported returns the error for a feature that the engine lacks.
func Unsupported(what string) *Error {
	return Failf(CodeUnsupported, "The engine does not support %s.", what)
}
