package writer

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
)

func tooLarge(code string) error {
	return &tablestore.OtsError{HttpStatusCode: 413, Code: code, Message: "<html>"}
}

func TestARefusedSizeIsHalvedAndOneThatPassedIsKept(t *testing.T) {
	s := new(Size)
	s.took(700)
	s.failed(1000, tooLarge(tablestore.OTS_CLIENT_UNKNOWN))
	conformance.Equal(t, s.Limit(), 700, "limit")
	s = new(Size)
	for _, want := range []int{2000, 1000, 500} {
		s.failed(2*want, tooLarge(tablestore.OTS_CLIENT_UNKNOWN))
		conformance.Equal(t, s.Limit(), want, "limit")
	}
	s.failed(4000, tooLarge("OTSRequestBodyTooLarge")) // one that was in flight
	conformance.Equal(t, s.Limit(), 500, "limit")
	s.failed(400, errors.New("EOF"))
	conformance.Equal(t, s.Limit(), 500, "limit after a lost answer")
}

func TestAPageWithStatus413LeavesRowsOpenUntilOneAloneIsRefusedThreeTimes(t *testing.T) {
	fail := true
	f := &fake{write: func(rows [][]byte) ([]result, error) {
		if fail {
			return nil, tooLarge(tablestore.OTS_CLIENT_UNKNOWN)
		}
		return make([]result, len(rows)), nil
	}}
	for _, tt := range []struct {
		rows, times int
		passed      bool // the same body before
		want        table.Fate
	}{{3, 5, false, table.Unknown}, {1, 2, false, table.Unknown}, {1, 3, false, table.Refused}, {1, 5, true, table.Unknown}} {
		rows, repeated, outcomes := batch(t, tt.rows, table.Put)
		size := new(Size)
		w := New(f, f, "t", table.Put, table.Ignore).With(Options{Size: size})
		if tt.passed {
			fail = false
			if _, err := w.Write(rows, repeated, outcomes); err != nil || outcomes[0].Fate != table.Written {
				t.Fatalf("%+v: %+v, %v", tt, outcomes[0], err)
			}
			fail = true
		}
		for range tt.times {
			if _, err := w.Write(rows, repeated, outcomes); err != nil {
				t.Fatalf("%+v: %v", tt, err)
			}
		}
		if outcomes[0].Fate != tt.want || size.Limit() == 0 {
			t.Errorf("%+v: %+v, limit %d", tt, outcomes[0], size.Limit())
		}
		if tt.want == table.Refused && !strings.Contains(fmt.Sprint(outcomes[0]), "413") {
			t.Errorf("%+v", outcomes[0])
		}
	}
}
