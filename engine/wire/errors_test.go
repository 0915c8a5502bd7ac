package wire

import (
	"testing"

	"example.com/tsimport/internal/conformance"
)

func TestEveryCodeHasItsStatusAndMessage(t *testing.T) {
	want := map[string]Error{
		"OTSAuthFailed":                  {Status: 403, Message: "The user has no privilege to access the instance."},
		"OTSNoPermissionAccess":          {Status: 403, Message: "You have no permission to access the requested resource."},
		"OTSRequestBodyTooLarge":         {Status: 413, Message: "The size of POST data is too large."},
		"OTSMethodNotAllowed":            {Status: 405, Message: "Only POST method for requests is supported."},
		"OTSParameterInvalid":            {Status: 400, Message: "Invalid parameter."},
		"OTSUnsupportedOperation":        {Status: 400, Message: "This operation is not supported."},
		"OTSInvalidPK":                   {Status: 400, Message: "Primary key schema mismatch."},
		"OTSConditionCheckFail":          {Status: 403, Message: "Condition check failed."},
		"OTSObjectNotExist":              {Status: 404, Message: "Requested table does not exist."},
		"OTSObjectAlreadyExist":          {Status: 409, Message: "Requested table already exists."},
		"OTSInternalServerError":         {Status: 500, Message: "Internal server error."},
		"OTSServerBusy":                  {Status: 503, Message: "Server is busy."},
		"OTSPartitionUnavailable":        {Status: 503, Message: "The partition is not available."},
		"OTSTimeout":                     {Status: 503, Message: "Operation timeout."},
		"OTSServerUnavailable":           {Status: 503, Message: "Server is not available."},
		"OTSNotEnoughCapacityUnit":       {Status: 403, Message: "Remaining capacity unit is not enough."},
		"OTSCapacityUnitExhausted":       {Status: 403, Message: "Capacity unit is not enough."},
		"OTSRowOperationConflict":        {Status: 409, Message: "Data is being modified by the other request."},
		"OTSTableNotReady":               {Status: 404, Message: "The table is not ready."},
		"OTSQuotaExhausted":              {Status: 403, Message: "Number of tables exceeded the quota."},
		"OTSForbiddenUpdateCapacityUnit": {Status: 400, Message: "Your instance is forbidden to update capacity unit."},
		"OTSRequestTimeout":              {Status: 408, Message: "Request timeout."},

		"OTSTooFrequentReservedThroughputAdjustment": {Status: 403, Message: "Capacity unit adjustment is too frequent."},
	}
	for code, w := range want {
		if got := Fail(code); got.Code != code || got.Status != w.Status || got.Message != w.Message {
			t.Errorf("%s: got %d %q, want %d %q", code, got.Status, got.Message, w.Status, w.Message)
		}
	}
	if got := Fail("OTSNew"); got.Status != 503 || got.Code != "OTSNew" || got.Message == "" {
		t.Errorf("a code that nobody knows: %+v", got)
	}
}

func TestAFailedRowConsumesByItsCause(t *testing.T) {
	for code, w := range map[string][2]Capacity{ // as a write, as a read
		CodeConditionCheckFail:    {{1, 1}, {1, 1}},
		CodeObjectNotExist:        {{0, 1}, {1, 0}},
		CodeInvalidPK:             {{0, 1}, {1, 0}},
		CodeParameterInvalid:      {{0, 1}, {1, 0}},
		CodeRowOperationConflict:  {{0, 1}, {1, 0}},
		CodeServerBusy:            {},
		CodePartitionUnavailable:  {},
		CodeTimeout:               {},
		CodeInternalServerError:   {},
		CodeNotEnoughCapacityUnit: {},
		CodeCapacityUnitExhausted: {},
	} {
		conformance.Equal(t, [2]Capacity{failedUnits(Fail(code), false), failedUnits(Fail(code), true)}, w, "%s", code)
	}
}
