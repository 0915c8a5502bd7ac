package client

import (
	"fmt"
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
		has, descErr := a.hasIndex(name, &i)
		if descErr != nil {
			return descErr
		}
		if has {
			return nil
		}
		return err
	})
	if codeOf(err) == "OTSObjectAlreadyExist" {
		return fmt.Errorf("create index %s of table %s: %w", i.Name, name, ErrTableExists)
	}
	if err != nil {
		return fmt.Errorf("create index %s of table %s: %w", i.Name, name, &Error{err})
	}
	return nil
}

func (a *Admin) hasIndex(name string, want *table.Index) (bool, error) {
	t, err := a.Describe(name)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(t.IndexesAre, func(has table.Index) bool { return has.Holds(want) }), nil
}

// indexRefused reports whether the service refused a write to an index: "Can't write index table directly".
func indexRefused(message string) bool {
	return strings.HasPrefix(message, "Can't ") && strings.Contains(message, "index table directly")
}
