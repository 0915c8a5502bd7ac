package exitcode

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/conformance"
)

type coded int

func (c coded) Error() string { return "coded" }
func (c coded) Exit() int     { return int(c) }

func TestExitCodesOfErrors(t *testing.T) {
	answer := func(code, message string) error {
		return fmt.Errorf("write: %w", &tablestore.OtsError{Code: code, Message: message, HttpStatusCode: 400})
	}
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, OK},
		{errors.New("disk full"), Failed},
		{context.Canceled, Failed},
		{fmt.Errorf("a: %w", coded(Usage)), Usage},
		{errors.Join(errors.New("a"), coded(Terminated)), Terminated},
		{fmt.Errorf("show: %w", syscall.EPIPE), Pipe},
		{answer("OTSAuthFailed", "The AccessKeyID does not exist."), Refused},
		{answer("OTSNoPermissionAccess", "no"), Refused},
		{answer("OTSPermissionDenied", "no"), Refused},
		{answer("OTSObjectNotExist", "Requested table does not exist."), Refused},
		{answer("OTSQuotaExhausted", "Number of tables exceeded the quota."), Refused},
		{answer("OTSQuotaExhausted", "Too frequent table operations."), Failed},
		{answer("OTSServerBusy", "busy"), Failed},
		{answer("OTSTimeout", "late"), Failed},
		{answer("OTSNobodyKnows", "?"), Failed},
	} {
		conformance.Equal(t, Of(c.err), c.want, "%v", c.err)
	}
}

func TestFirstOfSeveralCodes(t *testing.T) {
	for i, c := range []struct {
		codes []int
		want  int
	}{
		{nil, OK},
		{[]int{OK, NoInput, OK}, NoInput},
		{[]int{NoInput, Differences}, Differences},
		{[]int{Rejects, NoInput}, NoInput},
		{[]int{Differences, Rejects}, Differences},
		{[]int{Rejects, Usage}, Usage},
		{[]int{Usage, ErrorLimit}, ErrorLimit},
		{[]int{ErrorLimit, Refused}, Refused},
		{[]int{Refused, Failed}, Failed},
		{[]int{Failed, Terminated}, Terminated},
		{[]int{Terminated, Interrupted}, Interrupted},
		{[]int{Rejects, 77}, Failed},
	} {
		conformance.Equal(t, First(c.codes...), c.want, "%d: %v", i, c.codes)
	}
}
