package wire

import "slices"

// IndexMeta describes a secondary index: a table that the engine maintains.
type IndexMeta struct {
	Name    string
	Key     []string // key and predefined columns of the table; the engine adds the rest of its key
	Columns []string // predefined columns besides the key
	Local   bool     // a local index, whose key begins with the table's partition key
	inSync  bool     // requested with IUM_SYNC_INDEX, the mode of local indexes
}

// MaxIndexes limits a table's indexes.
const MaxIndexes = 5

// CheckIndexCount checks the number of a table's indexes.
func CheckIndexCount(n int) *Error {
	if n > MaxIndexes {
		return Invalid("Number of index per table exceeds the quota:%d.", MaxIndexes)
	}
	return nil
}

// checkAlone makes the checks that need no table. The service makes these first, too.
func (r *IndexMeta) checkAlone() *Error {
	switch n := len(r.Key); {
	case r.inSync && !r.Local:
		return Unsupported("global secondary indexes in the mode IUM_SYNC_INDEX; make them with IUM_ASYNC_INDEX")
	case n == 0 || n > MaxIndexColumns:
		return Invalid("The number of primary key columns must be in range: [1, %d] in index.", MaxIndexColumns)
	case len(r.Columns) > MaxDefinedColumns:
		return Invalid("The number of attribute columns must be in range: [0, %d] in index.", MaxDefinedColumns)
	}
	return nil
}

func (r *IndexMeta) read(b []byte) *Error {
	var mode Optional[int32]
	err := message{{1, "", &r.Name}, {2, "", &r.Key}, {3, "", &r.Columns}, {4, "", &mode}, {5, "", &r.Local}}.read(b)
	r.inSync = mode.Value == 1
	return err
}

// Check checks an index of a table and returns its complete key: the named columns and the rest of the table's key.
func (r *IndexMeta) Check(key []KeyColumn, defined []DefinedColumn) ([]KeyColumn, *Error) {
	if !ValidTableName([]byte(r.Name)) {
		return nil, invalidTableName([]byte(r.Name))
	}
	if slices.ContainsFunc(key, func(c KeyColumn) bool { return c.AutoIncrement && c.Name == r.Key[0] }) {
		return nil, Invalid("First primary key can't be auto increment, table: %s.", r.Name)
	}
	if r.Local && r.Key[0] != key[0].Name {
		return nil, Invalid("The first primary key column of local index '%s' must be the table's, '%s'.", r.Name,
			key[0].Name)
	}
	var whole []KeyColumn
	for _, name := range r.Key {
		c, ok := indexColumn(name, key, defined)
		if !ok {
			return nil,
				Invalid(
					"Column '%s' of index '%s' is neither a primary key column of the table nor a defined column of a key type.",
					name, r.Name)
		}
		if slices.ContainsFunc(whole, func(k KeyColumn) bool { return k.Name == name }) {
			return nil, Invalid("Duplicated primary key name: '%s'.", name)
		}
		whole = append(whole, c)
	}
	for _, c := range key {
		if !slices.Contains(r.Key, c.Name) {
			whole = append(whole, KeyColumn{Name: c.Name, Type: c.Type})
		}
	}
	seen := map[string]bool{}
	for _, name := range r.Columns {
		switch {
		case !slices.ContainsFunc(defined, func(d DefinedColumn) bool { return d.Name == name }):
			return nil, Invalid("Column '%s' of index '%s' is not a defined column of the table.", name, r.Name)
		case seen[name] || slices.Contains(r.Key, name):
			return nil, Invalid("Duplicated column name: '%s'.", name)
		}
		seen[name] = true
	}
	return whole, nil
}

func indexColumn(name string, key []KeyColumn, defined []DefinedColumn) (KeyColumn, bool) {
	for _, c := range key {
		if c.Name == name {
			return KeyColumn{Name: name, Type: c.Type}, true
		}
	}
	for _, c := range defined {
		if c.Name != name {
			continue
		}
		for _, t := range []KeyType{KeyInteger, KeyString, KeyBinary} {
			if t.ValueType() == c.ValueType() {
				return KeyColumn{Name: name, Type: t}, true
			}
		}
	}
	return KeyColumn{}, false
}

// CheckIndexable checks whether a table may have indexes: it must keep one version per cell, and if its data expires,
// it must not allow updates, so that rows of an index expire together with the table's.
func CheckIndexable(ttl, maxVersions int32, updates bool) *Error {
	switch {
	case maxVersions != 1:
		return Invalid("The maximum versions of a table with secondary indexes must be 1.")
	case ttl != -1 && updates:
		return Invalid("Don't support allow update operation on table with index and ttl")
	}
	return nil
}

type CreateIndex struct {
	Table    TableName
	Index    IndexMeta
	BaseData bool // also index existing rows
}

func DecodeCreateIndex(b []byte) (*CreateIndex, *Error) {
	r := &CreateIndex{}
	err := message{{1, "main_table_name", &r.Table}, {2, "index_meta", r.Index.read}, {3, "", &r.BaseData}}.read(b)
	if err == nil {
		err = r.Index.checkAlone()
	}
	return r, err
}

type DropIndex struct {
	Table TableName
	Index []byte
}

func DecodeDropIndex(b []byte) (*DropIndex, *Error) {
	r := &DropIndex{}
	return r, message{{1, "main_table_name", &r.Table}, {2, "index_name", &r.Index}}.read(b)
}

func appendIndex(dst []byte, r *IndexMeta) []byte {
	const phase = 2        // ISP_INCR: the rows that existed before the index are in it
	local := flag(r.Local) // both the type and the update mode: global and asynchronous, or local and synchronous
	index := appendText(nil, 1, r.Name)
	for _, name := range r.Key {
		index = appendText(index, 2, name)
	}
	for _, name := range r.Columns {
		index = appendText(index, 3, name)
	}
	return appendBytes(dst, 8, appendInt(appendInt(appendInt(index, 4, local), 5, local), 6, phase))
}
