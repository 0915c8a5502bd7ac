package sqlite

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/sqltable"
)

type column struct {
	declared  string
	inKey     bool
	collation string // collation in the index of the key
}

// rowid is the column that is added to a table without a primary key.
const rowid = "rowid"

// describe reads a table's columns and key. It refuses a table that cannot be read exactly.
func (a *Address) describe(ctx context.Context, s *session) (*sqltable.Table, error) {
	encoding, err := s.query(ctx, "PRAGMA encoding")
	if err != nil {
		return nil, err
	}
	if encoding[0][0] != "UTF-8" {
		return nil, fmt.Errorf("%s stores text as %s, and invalid characters would be replaced silently; make a copy in "+
			"UTF-8: sqlite3 %s .dump | sqlite3 copy.db", a.path, encoding[0][0], a.word())
	}
	found, err := s.query(ctx, "SELECT name, type, wr, strict FROM pragma_table_list WHERE schema = 'main' AND (name = "+
		"?1 OR lower(name) = lower(?1)) ORDER BY name <> ?1", a.table)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 || strings.HasPrefix(found[0][0], "sqlite_") {
		return nil, fmt.Errorf("there is no table %s; tsimport tables sqlite:%s lists them", quote(a.table), a.word())
	}
	name, without, strict := found[0][0], found[0][2] == "1", found[0][3] == "1"
	t := &sqltable.Table{Name: quote(name)}
	switch kind := found[0][1]; kind {
	case "table":
	case "view":
		return nil, fmt.Errorf("%s is a view, which has no key from which a load could resume; load it from a file: "+
			"sqlite3 -quote -header %s 'SELECT * FROM %[1]s' | tsimport load - --dialect sqlite-quote", t.Name, a.word())
	default:
		return nil, fmt.Errorf("%s is a %s table, not an ordinary table", t.Name, kind)
	}
	columns, err := s.query(ctx, "SELECT name, type, pk, hidden FROM pragma_table_xinfo(?)", name)
	if err != nil {
		return nil, err
	}
	var schema strings.Builder
	info, err := os.Stat(a.path)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&schema, "%s of %s%s", t.Name, a.path, fileID(info))
	keys := map[int]int{}
	for _, r := range columns {
		c := sqltable.Column{Name: r[0], Kind: record.String, Type: table.Any, Read: readAny,
			Of: &column{declared: r[1], collation: "BINARY"}}
		if kind, ok := strictKinds[strings.ToUpper(r[1])]; strict && ok {
			c.Kind, c.Type = kind, sqltable.Types[kind]
		}
		fmt.Fprintf(&schema, ", %q %s %s", r[0], r[1], r[3])
		if n, _ := strconv.Atoi(r[2]); n > 0 {
			keys[n-1] = len(t.Columns)
		}
		t.Columns = append(t.Columns, c)
	}
	for n := range len(keys) {
		t.Key = append(t.Key, keys[n])
	}
	if err := a.describeKey(ctx, s, t, name, without); err != nil {
		return nil, err
	}
	for _, k := range t.Key {
		c := &t.Columns[k]
		fmt.Fprintf(&schema, ", key %q %s %s", c.Name, c.Of.(*column).collation, words[c.Kind])
	}
	version, err := s.query(ctx, "SELECT schema_version, page_count * page_size FROM pragma_schema_version, "+
		"pragma_page_count, pragma_page_size")
	if err != nil {
		return nil, err
	}
	t.Bytes, _ = strconv.ParseInt(version[0][1], 10, 64)
	if t.Columns[0].Name == rowid && t.Columns[0].Of.(*column).declared == "" && len(columns) < len(t.Columns) {
		fmt.Fprintf(&schema, ", version %s of the schema", version[0][0]) // VACUUM renumbers rows and changes the version
	}
	t.Schema = schema.String()
	return t, nil
}

var strictKinds = map[string]record.Kind{"INT": record.Integer, "INTEGER": record.Integer, "REAL": record.Double,
	"TEXT": record.String, "BLOB": record.Binary}

// describeKey finds the index of the key and the kinds of the key's values.
func (a *Address) describeKey(ctx context.Context, s *session, t *sqltable.Table, name string, without bool) error {
	indexes, err := s.query(ctx, "SELECT name FROM pragma_index_list(?) WHERE origin = 'pk'", name)
	if err != nil {
		return err
	}
	switch {
	case len(t.Key) == 0:
		if slices.ContainsFunc(t.Columns, func(c sqltable.Column) bool { return strings.EqualFold(c.Name, rowid) }) {
			return fmt.Errorf("%s has no primary key, but a column called rowid; add a key, or load it from a "+
				"file: sqlite3 -quote -header %s 'SELECT * FROM %[1]s' | tsimport load - --dialect sqlite-quote", t.Name, a.word())
		}
		t.Columns = slices.Insert(t.Columns, 0, sqltable.Column{Name: rowid, Of: &column{collation: "BINARY"}})
		t.Key = []int{0}
		a.settle(t, 0, record.Integer)
	case len(indexes) == 0 && !without: // an INTEGER PRIMARY KEY is the rowid
		a.settle(t, t.Key[0], record.Integer)
	default:
		if len(indexes) > 0 {
			rules, err := s.query(ctx, "SELECT name, coll FROM pragma_index_xinfo(?) WHERE key = 1", indexes[0][0])
			if err != nil {
				return err
			}
			for _, k := range t.Key {
				for _, r := range rules {
					if r[0] == t.Columns[k].Name {
						t.Columns[k].Of.(*column).collation = r[1]
					}
				}
			}
		}
		unique, err := s.query(ctx,
			`SELECT i.name, coalesce(x.name, '') FROM pragma_index_list(?) i, pragma_index_xinfo(i.name) x WHERE i."unique" = 1 AND i.partial = 0 AND i.origin <> 'pk' AND x.key = 1`, name)
		if err != nil {
			return err
		}
		t.AddUnique(unique)
		return a.keyKinds(ctx, s, t)
	}
	return nil
}

// settle sets the kind of a key column, which must be the same in all rows.
func (a *Address) settle(t *sqltable.Table, i int, kind record.Kind) {
	c := &t.Columns[i]
	c.Kind, c.Type, c.Read = kind, sqltable.Types[kind], nil
	c.Of.(*column).inKey = true
}

// keyKinds takes the kinds of the key's values from the first row. Reading fails at a row with other kinds.
func (a *Address) keyKinds(ctx context.Context, s *session, t *sqltable.Table) error {
	var types []string
	for _, k := range t.Key {
		if c := t.Columns[k].Of.(*column); !builtin[strings.ToUpper(c.collation)] {
			return fmt.Errorf("column %s of the primary key of %s uses the collation %s, which only the program that writes "+
				"the file has; load it from a file", t.Columns[k].Name, t.Name, c.collation)
		}
		types = append(types, "typeof("+quote(t.Columns[k].Name)+")")
	}
	first, err := s.query(ctx, "SELECT "+strings.Join(types, ", ")+" FROM "+t.Name+" LIMIT 1")
	if err != nil {
		return err
	}
	for i, k := range t.Key {
		kind := record.String
		if declared := strings.ToUpper(t.Columns[k].Of.(*column).declared); strings.Contains(declared, "INT") {
			kind = record.Integer
		}
		if len(first) > 0 {
			known, ok := keyTypes[first[0][i]]
			if !ok {
				return fmt.Errorf("column %s of the primary key of %s holds a value of the type %s, which cannot be part of a "+
					"key here; load the table from a file", t.Columns[k].Name, t.Name, first[0][i])
			}
			kind = known
		}
		a.settle(t, k, kind)
	}
	return nil
}

var builtin = map[string]bool{"BINARY": true, "NOCASE": true, "RTRIM": true}

var keyTypes = map[string]record.Kind{"integer": record.Integer, "text": record.String, "blob": record.Binary}

// checkKey looks for a row whose key would be refused, so that the load fails before it writes anything.
func (a *Address) checkKey(ctx context.Context, s *session, t *sqltable.Table) error {
	if len(t.Key) == 1 && t.Columns[t.Key[0]].Of.(*column).collation == "BINARY" &&
		t.Columns[t.Key[0]].Kind == record.Integer {
		if only, err := s.query(ctx, "SELECT 1 FROM pragma_index_list(?) WHERE origin = 'pk'",
			strings.ReplaceAll(strings.Trim(t.Name, `"`), `""`, `"`)); err != nil || len(only) == 0 {
			return err // a rowid is always an integer
		}
	}
	for _, k := range t.Key {
		c := &t.Columns[k]
		var want string
		for name, kind := range keyTypes {
			if kind == c.Kind {
				want = name
			}
		}
		other, err := s.query(ctx, "SELECT typeof("+quote(c.Name)+") FROM "+t.Name+" WHERE typeof("+quote(c.Name)+
			") <> ? LIMIT 1", want)
		if err != nil {
			return err
		}
		if len(other) > 0 {
			return fmt.Errorf("column %s of the primary key of %s holds values of the types %s and %s; resuming needs values "+
				"of one type: correct the row, or load the table from a file: sqlite3 -quote -header %s 'SELECT * FROM %[2]s' | "+
				"tsimport load - --dialect sqlite-quote", c.Name, t.Name, want, other[0][0], a.word())
		}
	}
	return nil
}

// Bounds cuts integer keys at equal distances between the least and the greatest. It finds other bounds by counting.
func (a *Address) Bounds(ctx context.Context, look sqltable.Session, t *sqltable.Table) (bounds [][][]byte, err error) {
	s, ranges := look.(*session), t.Ranges()
	if len(t.Key) == 1 && t.Columns[t.Key[0]].Kind == record.Integer {
		return s.evenly(ctx, t, ranges)
	}
	count, err := s.query(ctx, "SELECT count(*) FROM "+t.Name)
	if err != nil {
		return nil, err
	}
	n, _ := strconv.Atoi(count[0][0])
	var key [][]byte
	for n >= 10*ranges && len(bounds) < ranges-1 {
		if key, err = s.keyAfter(ctx, t, key, n/ranges); err != nil || key == nil {
			break
		}
		bounds = append(bounds, key)
	}
	return bounds, err
}

// evenly returns keys of rows at approximately equal distances.
func (s *session) evenly(ctx context.Context, t *sqltable.Table, ranges int) (bounds [][][]byte, err error) {
	k := quote(t.Columns[t.Key[0]].Name)
	ends, err := s.query(ctx, "SELECT min("+k+"), max("+k+") FROM "+t.Name)
	if err != nil {
		return nil, err
	}
	least, err1 := strconv.ParseInt(ends[0][0], 10, 64)
	greatest, err2 := strconv.ParseInt(ends[0][1], 10, 64)
	if err1 != nil || err2 != nil {
		return nil, nil // there are no rows
	}
	step := (uint64(greatest) - uint64(least)) / uint64(ranges)
	last := least
	for i := 1; i < ranges && step > 0; i++ {
		at := int64(uint64(least) + uint64(i)*step)
		row, err := s.query(ctx, "SELECT min("+k+") FROM "+t.Name+" WHERE "+k+" >= ?", at)
		if err != nil {
			return nil, err
		}
		key, err := strconv.ParseInt(row[0][0], 10, 64)
		if err == nil && key > last {
			bounds, last = append(bounds, [][]byte{[]byte(row[0][0])}), key
		}
	}
	return bounds, nil
}

// keyAfter returns the key that is rows rows after the key from, or nil if there is none.
func (s *session) keyAfter(ctx context.Context, t *sqltable.Table, from [][]byte, rows int) ([][]byte, error) {
	only := *t
	only.Columns = nil
	for i, k := range t.Key {
		only.Columns = append(only.Columns, t.Columns[k])
		if i == 0 {
			only.Key = nil
		}
		only.Key = append(only.Key, i)
	}
	page, err := s.Page(ctx, &only, sqltable.Query{Lower: from, Limit: rows + 1})
	if err != nil {
		return nil, err
	}
	n := 0
	var key [][]byte
	for page.Next() {
		if n++; n <= rows {
			continue
		}
		for _, v := range page.Values() {
			key = append(key, append([]byte{}, v...))
		}
	}
	return key, page.Close()
}
