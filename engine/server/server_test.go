package server

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

var testContext = context.Background()

// scan reads a whole table, page by page, as texts.
func scan(t testing.TB, c *tablestore.TableStoreClient, table string, dir tablestore.Direction, limit int32) (rows []string) {
	t.Helper()
	from, to := bounds()
	if dir == tablestore.BACKWARD {
		from, to = to, from
	}
	for from != nil {
		r, err := c.GetRange(&tablestore.GetRangeRequest{RangeRowQueryCriteria: &tablestore.RangeRowQueryCriteria{
			TableName: table, StartPrimaryKey: from, EndPrimaryKey: to, Direction: dir, MaxVersion: 100, Limit: limit,
		}})
		must(t, err)
		for _, row := range r.Rows {
			s := ""
			for _, k := range row.PrimaryKey.PrimaryKeys {
				s += fmt.Sprint(k.Value, " ")
			}
			for _, col := range row.Columns {
				s += fmt.Sprintf("%s=%v ", col.ColumnName, col.Value)
			}
			rows = append(rows, s)
		}
		from = r.NextStartPrimaryKey
	}
	return rows
}

func TestATransportAnswersWithAStatusLineAndALength(t *testing.T) {
	s := open(t, Options{})
	resp, err := s.Transport().RoundTrip(signed(s, "ListTable", nil))
	must(t, err)
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.Status != "200 OK" || len(body) != 0 || resp.ContentLength != 0 {
		t.Error(resp.Status, body, err)
	}
}
