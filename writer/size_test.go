package writer

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"tsimport/table"
)

func tooLarge(code string) error {
	return &tablestore.OtsError{HttpStatusCode: 413, Code: code, Message: "<html>"}
}

func TestARefusedSizeIsHalvedAndOneThatPassedIsKept(t *testing.T) {
	s := new(Size)
	s.took(700)
	s.failed(1000, tooLarge(tablestore.OTS_CLIENT_UNKNOWN))
	if s.Limit() != 700 {
		t.Errorf("limit %d, want what passed", s.Limit())
	}
	s = new(Size)
	for _, want := range []int{2000, 1000, 500} {
		s.failed(2*want, tooLarge(tablestore.OTS_CLIENT_UNKNOWN))
		if s.Limit() != want {
			t.Errorf("limit %d, want %d", s.Limit(), want)
		}
	}
	s.failed(4000, tooLarge("OTSRequestBodyTooLarge")) // one that was under way
	if s.Limit() != 500 {
		t.Errorf("limit %d, want 500", s.Limit())
	}
	s.failed(400, errors.New("EOF"))
	if s.Limit() != 500 {
		t.Errorf("limit %d after a lost answer", s.Limit())
	}
}

func TestAPageWithStatus413LeavesRowsOpenUntilOneAloneIsRefusedAgain(t *testing.T) {
	f := &fake{write: func([][]byte) ([]result, error) { return nil, tooLarge(tablestore.OTS_CLIENT_UNKNOWN) }}
	for _, tt := range []struct {
		rows  int
		again bool
		want  table.Fate
	}{{3, false, table.Unknown}, {3, true, table.Unknown}, {1, false, table.Unknown}, {1, true, table.Refused}} {
		rows, repeated, outcomes := batch(t, tt.rows, table.Put)
		repeated[0] = tt.again
		size := new(Size)
		w := New(f, f, "t", table.Put, table.Ignore).With(Extras{Size: size})
		if _, err := w.Write(rows, repeated, outcomes); err != nil || outcomes[0].Fate != tt.want || size.Limit() == 0 {
			t.Errorf("%+v: %+v, limit %d, %v", tt, outcomes[0], size.Limit(), err)
		}
		if tt.want == table.Refused && !strings.Contains(fmt.Sprint(outcomes[0]), "413") {
			t.Errorf("%+v", outcomes[0])
		}
	}
}
