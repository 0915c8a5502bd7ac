package client

import (
	"slices"
	"strings"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/table"
)

// CreateIndex creates a secondary index of a table, unless the table has it already. The service adds the existing rows
// to it. The error is ErrTableExists if the name belongs to a table, another index or an index of another table.
func (a *Admin) CreateIndex(name string, i table.Index) error {
	kind := tablestore.IT_GLOBAL_INDEX
	if i.Local {
		kind = tablestore.IT_LOCAL_INDEX
	}
	meta := &tablestore.IndexMeta{IndexName: i.Name, Primarykey: i.Key, DefinedColumns: i.Columns, IndexType: kind}
	err := a.try(func() error {
		_, err := a.Client.CreateIndex(&tablestore.CreateIndexRequest{MainTableName: name, IndexMeta: meta,
			IncludeBaseData: true})
		if codeOf(err) != "OTSObjectAlreadyExist" {
			return err
		}
		t, descErr := a.Describe(name)
		if descErr != nil {
			return descErr
		}
		if slices.ContainsFunc(t.IndexesAre, func(has table.Index) bool { return has.Holds(&i) }) {
			return nil
		}
		return err
	})
	return a.wrap("create index "+i.Name+" of", name, err)
}

// indexRefused reports whether the service refused a write to an index: "Can't write index table directly".
func indexRefused(message string) bool {
	return strings.HasPrefix(message, "Can't ") && strings.Contains(message, "index table directly")
}
