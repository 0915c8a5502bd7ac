package contract

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore/otsprotocol"
)

const (
	eq = tablestore.CT_EQUAL
	ne = tablestore.CT_NOT_EQUAL
	gt = tablestore.CT_GREATER_THAN
	ge = tablestore.CT_GREATER_EQUAL
	lt = tablestore.CT_LESS_THAN
	le = tablestore.CT_LESS_EQUAL
)

// compare returns a condition on the newest version of a column, which fails if the column is missing.
func compare(name string, op tablestore.ComparatorType, value any) *tablestore.SingleColumnCondition {
	x := tablestore.NewSingleColumnCondition(name, op, integer(value))
	x.FilterIfMissing, x.LatestVersionOnly = true, true
	return x
}

// lenient makes a condition pass if the column is missing.
func lenient(x *tablestore.SingleColumnCondition) *tablestore.SingleColumnCondition {
	x.FilterIfMissing = false
	return x
}

func anyVersion(x *tablestore.SingleColumnCondition) *tablestore.SingleColumnCondition {
	x.LatestVersionOnly = false
	return x
}

const stringType = tablestore.Variant_STRING

func matching(x *tablestore.SingleColumnCondition, regex string, cast tablestore.VariantType) tablestore.ColumnFilter {
	matched := *x
	matched.TransferRule = tablestore.NewValueTransferRule(regex, cast)
	return &matched
}

func combined(op tablestore.LogicalOperator, filters ...tablestore.ColumnFilter) tablestore.ColumnFilter {
	x := tablestore.NewCompositeColumnCondition(op)
	for _, f := range filters {
		x.AddFilter(f)
	}
	return x
}

func allOf(filters ...tablestore.ColumnFilter) tablestore.ColumnFilter {
	return combined(tablestore.LO_AND, filters...)
}
func anyOf(filters ...tablestore.ColumnFilter) tablestore.ColumnFilter {
	return combined(tablestore.LO_OR, filters...)
}
func not(filters ...tablestore.ColumnFilter) tablestore.ColumnFilter {
	return combined(tablestore.LO_NOT, filters...)
}

func pageOf(offset, limit int32) tablestore.ColumnFilter {
	return &tablestore.PaginationFilter{Offset: offset, Limit: limit}
}

func filtered(f tablestore.ColumnFilter) selection {
	return func(q *tablestore.SingleRowQueryCriteria) { q.Filter = f }
}

func (tb *table) tryBatchGet(k *tablestore.PrimaryKey, read ...selection) (tablestore.RowResult, error) {
	q := tb.criteria(k, read...)
	r, err := tb.BatchGetRow(&tablestore.BatchGetRowRequest{MultiRowQueryCriteria: []*tablestore.MultiRowQueryCriteria{{
		TableName: tb.name, PrimaryKey: []*tablestore.PrimaryKey{k}, ColumnsToGet: q.ColumnsToGet,
		MaxVersion: int(q.MaxVersion),
		TimeRange:  q.TimeRange, StartColumn: q.StartColumn, EndColumn: q.EndColumn, Filter: q.Filter,
	}}})
	if err != nil {
		return tablestore.RowResult{}, err
	}
	return r.TableToRowsResult[tb.name][0], nil
}

// checkRead reads a row with each of the three read operations. No other row may have its partition key.
func (tb *table) checkRead(t *testing.T, k *tablestore.PrimaryKey, want *row, read ...selection) {
	t.Helper()
	diff(t, tb.get(t, k, read...), want)
	b := conformance.Try(tb.tryBatchGet(k, read...)).Must(t)
	checkRow(t, b, accepted)
	diff(t, newRow(&b.PrimaryKey, b.Columns), want)
	for _, d := range []tablestore.Direction{tablestore.FORWARD, tablestore.BACKWARD} {
		start, end := tb.key(k.PrimaryKeys[0].Value, minKey), tb.key(k.PrimaryKeys[0].Value, maxKey)
		if d == tablestore.BACKWARD {
			start, end = end, start
		}
		rows, _ := tb.scan(t, d, start, end, 0, read...)
		if want == nil {
			diff(t, len(rows), 0)
		} else {
			diff(t, rows, []*row{want})
		}
	}
}

func (tb *table) checkReadsRefused(t *testing.T, f tablestore.ColumnFilter, want refusal) {
	t.Helper()
	_, _, err := tb.tryGet(tb.key("a", 1), filtered(f))
	check(t, err, want)
	_, err = tb.tryBatchGet(tb.key("a", 1), filtered(f))
	check(t, err, want)
	_, err = tb.GetRange(ranged(tb.criteria(tb.key("a", 1), filtered(f)), tablestore.FORWARD, tb.key("b", 1), 0))
	check(t, err, want)
}

// checkConditionsRefused sends each kind of write with a condition. A batch is refused as a whole.
func (tb *table) checkConditionsRefused(t *testing.T, name string, f tablestore.ColumnFilter, want refusal) {
	t.Helper()
	k := tb.key(name, 1)
	for how, change := range map[string]tablestore.RowChange{"put": tb.put(k), "update": tb.update(k, set("z", 1)),
		"delete": tb.delete(k)} {
		err := tb.do(when(f, change))
		bystander := tb.key(name+how, 2)
		_, inBatch := tb.batch(tb.put(bystander), change)
		if want == accepted && refusalOf(err) == conditionFailed {
			err = nil // the condition was evaluated and failed
		}
		check(t, err, want)
		check(t, inBatch, want)
		diff(t, tb.get(t, bystander) != nil, want == accepted)
	}
}

type rawFilter []byte

func (f rawFilter) Serialize() []byte { return f }

// ToFilter is called if f is part of another filter. It returns an empty filter.
func (f rawFilter) ToFilter() *otsprotocol.Filter { return &otsprotocol.Filter{} }

func TestFilterComparesAllTypes(t *testing.T) {
	s := proving(t, "2.5.1", "3.9.4", "3.9.5", "3.9.6")
	tb := s.newTable(t, tableOptions{})
	k := tb.key("k", 1)
	cells := []cell{c("b", []byte{1, 255}), c("d", 1.5), c("i", int64(10)), c("s", "mm"), c("t", true)}
	must(t, s.do(tb.put(k, cells...)))
	whole := &row{[]any{"k", int64(1)}, cells}
	// Constants less than, equal to and greater than the stored value.
	for name, constants := range map[string][3]any{
		"i": {9, 10, 11}, "d": {1.25, 1.5, 1.75}, "s": {"m", "mm", "n"}, "b": {[]byte{1}, []byte{1, 255}, []byte{2}},
		"t": {false, true, nil},
	} {
		for i, constant := range constants {
			if constant == nil {
				continue
			}
			for op, want := range map[tablestore.ComparatorType]bool{eq: i == 1, ne: i != 1, gt: i == 0, ge: i <= 1, lt: i == 2,
				le: i >= 1} {
				t.Run(fmt.Sprintf("%s, comparator %d, %v", name, op, constant), func(t *testing.T) {
					got := tb.get(t, k, filtered(compare(name, op, constant))).untimed()
					diff(t, got, map[bool]*row{true: whole}[want])
				})
			}
		}
		// With a value of another type every comparison fails. The service's answer is known only for equality.
		other := any("10")
		if name == "s" {
			other = []byte("mm")
		}
		for _, op := range []tablestore.ComparatorType{eq, ne, gt, ge, lt, le} {
			if op == eq || !s.real {
				diff(t, tb.get(t, k, filtered(compare(name, op, other))), (*row)(nil))
			}
		}
	}
}

func TestAllReadsFilterAlike(t *testing.T) {
	s := proving(t, "3.11.5")
	tb := s.newTable(t, tableOptions{versions: 5})
	k := tb.key("k", 1)
	at, a0, a1, a2, b1, c0, c2 := seedVersions(t, tb, k)
	some := rowOfVersions
	yes, no := compare("a", eq, 12), compare("a", eq, 1)
	for name, x := range map[string]struct {
		filter tablestore.ColumnFilter
		read   []selection
		want   *row
	}{
		"a condition that holds":           {yes, nil, some(a2, b1, c2)},
		"a condition that does not":        {no, nil, nil},
		"a missing column fails":           {compare("x", ne, 1), nil, nil},
		"a missing one passes if it may":   {lenient(compare("x", eq, 1)), nil, some(a2, b1, c2)},
		"not of a missing one that fails":  {not(compare("x", eq, 1)), nil, some(a2, b1, c2)},
		"not of a missing one that passes": {not(lenient(compare("x", eq, 1))), nil, nil},
		"unselected: missing":              {yes, []selection{versions(1), columns("b")}, nil},
		"unselected, and may be missing":   {lenient(no), []selection{versions(1), columns("b")}, some(b1)},
		"before the start: missing":        {yes, []selection{versions(1), columnRange("b", "")}, nil},
		"at the end: missing":              {compare("c", eq, 32), []selection{versions(1), columnRange("", "c")}, nil},
		"a column that is selected":        {compare("b", gt, 19), []selection{versions(1), columns("b", "c")}, some(b1, c2)},
		"no column is left: no row":        {lenient(compare("x", eq, 1)), []selection{versions(1), columns("x")}, nil},
		"a key, a column may be missing":   {lenient(compare("x", eq, 1)), []selection{versions(1), columns("pk1")}, some()},
		"the newest version decides":       {compare("a", eq, 11), []selection{versions(5)}, nil},
		"any version suffices": {anyVersion(compare("a", eq, 11)), []selection{versions(5)},
			some(a2, a1, a0, b1, c2, c0)},
		"an unread version does not count": {anyVersion(compare("a", eq, 11)), []selection{versions(1)}, nil},
		"the newest in time decides":       {compare("a", eq, 11), []selection{between(at, at+2)}, some(a1, a0, b1, c0)},
		"the one at a time decides":        {compare("a", eq, 10), []selection{exactly(at)}, some(a0, c0)},
		"outside the time range: missing":  {compare("b", eq, 20), []selection{between(at, at+1)}, nil},
		"all of an AND":                    {allOf(yes, compare("b", lt, 21), compare("c", ne, 30)), nil, some(a2, b1, c2)},
		"not all of an AND":                {allOf(yes, compare("b", lt, 21), no), nil, nil},
		"one of an OR":                     {anyOf(no, no, yes), nil, some(a2, b1, c2)},
		"none of an OR":                    {anyOf(no, no), nil, nil},
		"NOT":                              {not(no), nil, some(a2, b1, c2)},
		"nested":                           {allOf(not(anyOf(no, allOf(yes, no))), anyOf(yes, no)), nil, some(a2, b1, c2)},
		"the first page of columns":        {pageOf(0, 2), nil, some(a2, b1)},
		"the next page":                    {pageOf(2, 2), nil, some(c2)},
		"a page counts columns":            {pageOf(1, 2), []selection{versions(5)}, some(b1, c2, c0)},
		"a page of a start column":         {pageOf(1, 1), []selection{versions(1), columnRange("b", "")}, some(c2)},
		"a page of selected columns":       {pageOf(1, 5), []selection{versions(1), columns("a", "c")}, some(c2)},
		"a page of a time's columns":       {pageOf(1, 5), []selection{exactly(at + 1)}, some(b1)},
		"a page beyond the columns":        {pageOf(3, 1), nil, some()},
	} {
		t.Run(name, func(t *testing.T) { tb.checkRead(t, k, x.want, append(x.read, filtered(x.filter))...) })
	}
	t.Run("a page beyond the selected columns has no row", func(t *testing.T) {
		skipReal(t, s)
		tb.checkRead(t, k, nil, versions(1), columns("a", "c"), filtered(pageOf(2, 1)))
		tb.checkRead(t, k, some(), versions(1), columns("a", "c", "pk2"), filtered(pageOf(2, 1)))
	})
	t.Run("a key column is compared by its value", func(t *testing.T) {
		skipReal(t, s) // a real instance accepts such a filter, but its answer is unknown
		tb.checkRead(t, k, some(a2, b1, c2), filtered(allOf(compare("pk1", eq, "k"), compare("pk2", le, 1))))
		tb.checkRead(t, k, nil, filtered(compare("pk2", gt, 1)))
		tb.checkRead(t, k, some(b1), versions(1), columns("b"), filtered(compare("pk2", eq, 1)))
	})
}

func TestFilterComparesRegexMatch(t *testing.T) {
	s := proving(t, "3.9.8")
	tb := s.newTable(t, tableOptions{})
	k := tb.key("k", 1)
	must(t, s.do(tb.put(k, c("i", 5), c("j", `{cluster_name:name1,lastupdatetime:12345,load:2.5}`))))
	const integerType, doubleType = tablestore.Variant_INTEGER, tablestore.Variant_DOUBLE
	for name, x := range map[string]struct {
		filter tablestore.ColumnFilter
		want   bool
	}{
		"an integer that is greater":     {matching(compare("j", gt, 12344), `lastupdatetime:([0-9]+)`, integerType), true},
		"an integer that is not greater": {matching(compare("j", gt, 12345), `lastupdatetime:([0-9]+)`, integerType), false},
		"a double":                       {matching(compare("j", eq, 2.5), `load:([0-9.]+)`, doubleType), true},
		"a string":                       {matching(compare("j", eq, "name1"), `cluster_name:([a-z0-9]+)`, stringType), true},
		"the first group of two":         {matching(compare("j", eq, "12"), `:(12)(345)`, stringType), true},
		"the whole match":                {matching(compare("j", eq, "name1"), `name[0-9]`, stringType), true},
		"no match":                       {matching(compare("j", eq, "x"), `x+`, stringType), false},
		"text that is no integer":        {matching(compare("j", ge, 0), `name`, integerType), false},
		"a column that is no string":     {matching(compare("i", eq, 5), `.*`, integerType), false},
		"a missing column that fails":    {matching(compare("x", eq, 5), `.*`, integerType), false},
		"a missing column that passes":   {matching(lenient(compare("x", eq, 5)), `.*`, integerType), true},
	} {
		t.Run(name, func(t *testing.T) { diff(t, tb.get(t, k, filtered(x.filter)) != nil, x.want) })
	}
	t.Run("an expression that compiles to too much is refused", func(t *testing.T) {
		skipReal(t, s)
		tb.checkReadsRefused(t, matching(compare("j", eq, ""), `((a{100}){100}){100}`, stringType), invalid(""))
		tb.checkReadsRefused(t, matching(compare("j", eq, ""), strings.Repeat(`(\pL{50}){50}`, 19), stringType), invalid(""))
	})
}

func TestInvalidFiltersAreRefused(t *testing.T) {
	s := proving(t, "2.5.1", "3.5.6", "3.9.3", "3.9.7")
	tb := s.newTable(t, tableOptions{})
	leaf := lenient(compare("c", eq, 1))
	many := func(n int) []tablestore.ColumnFilter { return slices.Repeat([]tablestore.ColumnFilter{leaf}, n) }
	nested := func(depth int) tablestore.ColumnFilter {
		f := tablestore.ColumnFilter(leaf)
		for range depth {
			f = not(f)
		}
		return f
	}
	single := func(comparator, typ int64, value []byte) rawFilter {
		return rawFilter(message{}.int(1, typ).bytes(2, message{}.int(1, comparator).text(2, "c").bytes(3, value).int(4,
			0).int(5, 0)))
	}
	composite := func(operator int64, last []byte) rawFilter {
		parts := message{}.int(1, operator).bytes(2, leaf.Serialize()).bytes(2, last)
		return rawFilter(message{}.int(1, 2).bytes(2, parts))
	}
	one, blank := []byte{0, 1, 0, 0, 0, 0, 0, 0, 0}, lenient(compare("c", eq, ""))
	var (
		tooMany  = invalid("The count of filter exceeds the max: 32.")
		tooFew   = invalid("Invalid AND/OR operator: the number of sub-filters must be more than 1.")
		noFilter = invalid("Deserialize filter failed.")
	)
	for name, x := range map[string]struct {
		filter tablestore.ColumnFilter
		want   refusal
	}{
		"OR of 31":          {anyOf(many(31)...), accepted},
		"OR of 32":          {anyOf(many(32)...), tooMany},
		"AND of 31":         {allOf(many(31)...), accepted},
		"AND of 32":         {allOf(many(32)...), tooMany},
		"NOT 31 deep":       {nested(31), accepted},
		"NOT 32 deep":       {nested(32), tooMany},
		"two of 15":         {anyOf(allOf(many(15)...), allOf(many(14)...)), accepted},
		"two of 15 and one": {anyOf(allOf(many(15)...), allOf(many(15)...)), tooMany},
		"AND of one":        {allOf(leaf), tooFew},
		"OR of one":         {anyOf(leaf), tooFew},
		"AND of none":       {allOf(), tooFew},
		"NOT of two":        {not(leaf, leaf), invalid("")},
		"NOT of none":       {not(), invalid("")},
		"a page from column -1": {pageOf(-1, 1),
			invalid("Offset in ColumnPaginationFilter must be greater than or equal to 0.")},
		"a page of 0 columns":      {pageOf(0, 0), invalid("Limit in ColumnPaginationFilter must be greater than 0.")},
		"a page of -1 columns":     {pageOf(0, -1), invalid("Limit in ColumnPaginationFilter must be greater than 0.")},
		"a page of no offset":      {rawFilter(message{}.int(1, 3).bytes(2, message{}.int(2, 1))), noFilter},
		"a page of no limit":       {rawFilter(message{}.int(1, 3).bytes(2, message{}.int(1, 1))), noFilter},
		"an unparsable body":       {rawFilter(message{}.int(1, 1).int(2, 1)), noFilter},
		"no body":                  {rawFilter(message{}.int(1, 1)), noFilter},
		"an unknown operator":      {composite(4, leaf.Serialize()), noFilter},
		"a combinator of 0":        {composite(0, leaf.Serialize()), noFilter},
		"an unparsable part":       {composite(2, []byte{0xff}), noFilter},
		"no bytes are no filter":   {rawFilter{}, accepted},
		"an expression of 256":     {matching(blank, text(256), stringType), accepted},
		"an expression of 257":     {matching(blank, text(257), stringType), invalid("")},
		"no expression":            {matching(blank, "[", stringType), invalid("")},
		"NOT 1,000 deep":           {nested(1_000), tooMany},
		"OR of 1,000":              {anyOf(many(1_000)...), tooMany},
		"NOT of 33":                {not(many(33)...), tooMany},
		"no column name":           {compare("", eq, 1), invalid("Invalid column name: ''.")},
		"a column name of 255":     {lenient(compare(text(255), eq, 1)), accepted},
		"a column name of 256":     {compare(text(256), eq, 1), invalid("Invalid column name: '" + text(256) + "'.")},
		"text that is none":        {compare("c", eq, "\xff"), invalid("Value of column c must be UTF8 encoding.")},
		"not a number":             {compare("c", eq, math.NaN()), invalid("NaN can't be set to double value.")},
		"an infinity":              {compare("c", eq, math.Inf(1)), invalid("Infinity can't be set to double value.")},
		"unparsable bytes":         {rawFilter{0xff, 0xff}, noFilter},
		"a message that is cut":    {rawFilter(message{}.int(1, 1).bytes(2, one))[:4], noFilter},
		"no type":                  {rawFilter(message{}.bytes(2, one)), noFilter},
		"an unknown type":          {single(1, 4, one), noFilter},
		"a type of 0":              {single(1, 0, one), noFilter},
		"a comparator of 0":        {single(0, 1, one), noFilter},
		"a comparator of 9":        {single(9, 1, one), noFilter},
		"no value":                 {single(1, 1, nil), noFilter},
		"a value and more":         {single(1, 1, append(one, 0)), noFilter},
		"null":                     {single(1, 1, []byte{6}), invalid("VT_NULL is an invalid type…")},
		"a placeholder":            {single(1, 1, []byte{11}), invalid("VT_AUTO_INCREMENT is an invalid type…")},
		"an unknown comparator":    {single(99, 1, one), noFilter},
		"a value that is cut":      {single(1, 1, one[:3]), noFilter},
		"an unknown type of value": {single(1, 1, []byte{5}), noFilter},
		"a value for keys":         {single(1, 1, []byte{9}), invalid("")},
		"a complete one":           {single(1, 1, one), accepted},
	} {
		t.Run(name, func(t *testing.T) {
			tb.checkReadsRefused(t, x.filter, x.want)
			tb.checkConditionsRefused(t, name, x.filter, x.want)
		})
	}
	for field := range 5 { // all fields of a comparison are required
		var body message
		for i, b := range []message{message{}.int(1, 1), message{}.text(2, "c"), message{}.bytes(3, one), message{}.int(4, 0),
			message{}.int(5, 0)} {
			if i != field {
				body = append(body, b...)
			}
		}
		tb.checkReadsRefused(t, rawFilter(message{}.int(1, 1).bytes(2, body)), noFilter)
	}
	tb.checkConditionsRefused(t, "a page", pageOf(0, 1), invalid(""))
	tb.checkConditionsRefused(t, "a page inside", allOf(leaf, pageOf(0, 1)), invalid(""))
	t.Run("a page inside another filter", func(t *testing.T) {
		skipReal(t, s)
		tb.checkReadsRefused(t, allOf(leaf, pageOf(0, 1)),
			invalid("ColumnPaginationFilter cannot be given inside CompositeColumnValueFilter."))
	})
}

// when gives a change a condition on columns of the old row; nil means none.
func when(f tablestore.ColumnFilter, change tablestore.RowChange) tablestore.RowChange {
	if f == nil {
		return change
	}
	switch x := change.(type) {
	case *tablestore.PutRowChange:
		x.SetColumnCondition(f)
	case *tablestore.UpdateRowChange:
		x.SetColumnCondition(f)
	case *tablestore.DeleteRowChange:
		x.SetColumnCondition(f)
	}
	return change
}

func TestWriteConditions(t *testing.T) {
	s := proving(t, "3.9.1", "3.9.3", "3.9.4", "3.10.3")
	tb := s.newTable(t, tableOptions{})
	writes := map[string]func(*tablestore.PrimaryKey) tablestore.RowChange{
		"put":       func(k *tablestore.PrimaryKey) tablestore.RowChange { return tb.put(k, c("new", 1)) },
		"update":    func(k *tablestore.PrimaryKey) tablestore.RowChange { return tb.update(k, set("new", 1)) },
		"increment": func(k *tablestore.PrimaryKey) tablestore.RowChange { return tb.update(k, add("new", 1)) },
		"delete":    func(k *tablestore.PrimaryKey) tablestore.RowChange { return tb.delete(k) },
	}
	holds, fails := compare("ver", eq, 3), compare("ver", gt, 3)
	missing, missingPasses := compare("x", ne, 0), lenient(compare("x", eq, 0))
	old := compare("old", eq, "ex")
	rules := map[string]struct {
		condition tablestore.ColumnFilter
		expect    tablestore.RowExistenceExpectation
		exists    bool
		want      refusal
	}{
		"ignoring a row that is there":       {nil, ignore, true, accepted},
		"ignoring a row that is not there":   {nil, ignore, false, accepted},
		"expecting a row that is there":      {nil, expectExist, true, accepted},
		"expecting a row that is not there":  {nil, expectExist, false, conditionFailed},
		"expecting no row, one there":        {nil, expectNotExist, true, conditionFailed},
		"expecting no row, none there":       {nil, expectNotExist, false, accepted},
		"a condition that holds":             {holds, ignore, true, accepted},
		"a condition that does not":          {fails, ignore, true, conditionFailed},
		"a missing column that fails":        {missing, ignore, true, conditionFailed},
		"a missing column that passes":       {missingPasses, ignore, true, accepted},
		"a condition on no row":              {holds, ignore, false, conditionFailed},
		"one that may be missing, on no row": {lenient(compare("ver", eq, 9)), ignore, false, accepted},
		"the contrary of one on no row":      {not(holds), ignore, false, accepted},
		"holding, one expected and there":    {holds, expectExist, true, accepted},
		"failing, one expected and there":    {fails, expectExist, true, conditionFailed},
		"passing, one expected, none there":  {missingPasses, expectExist, false, conditionFailed},
		"passing, none expected, none there": {missingPasses, expectNotExist, false, accepted},
		"passing, none expected, one there":  {missingPasses, expectNotExist, true, conditionFailed},
		"all of several":                     {allOf(holds, compare("old", eq, "text"), not(fails)), ignore, true, accepted},
		"not all of several":                 {allOf(holds, compare("old", eq, "other")), ignore, true, conditionFailed},
		"one of several":                     {anyOf(fails, holds), ignore, true, accepted},
		"an expression that finds something": {matching(old, "e.", stringType), ignore, true, accepted},
		"an expression that finds nothing":   {matching(old, "q.", stringType), ignore, true, conditionFailed},
		"what is changed, by its old value":  {missingPasses, ignore, true, accepted},
		"what is created is missing before":  {compare("new", eq, 1), ignore, true, conditionFailed},
	}
	for write, change := range writes {
		for name, rule := range rules {
			for _, how := range []string{"alone", "in a batch"} {
				t.Run(write+" "+name+" "+how, func(t *testing.T) {
					k := tb.key(write+name+how, 1)
					if rule.exists {
						must(t, s.do(tb.put(k, c("old", "text"), c("ver", 3))))
					}
					before := tb.get(t, k)
					conditional := when(rule.condition, expecting(rule.expect, change(k)))
					if how == "alone" {
						check(t, s.do(conditional), rule.want)
					} else {
						rows := tb.rows(t, conditional, tb.put(tb.key("bystander", 1)))
						checkRow(t, rows[0], rule.want)
						checkRow(t, rows[1], accepted)
					}
					after := tb.get(t, k)
					switch {
					case rule.want != accepted:
						diff(t, after, before)
					case write == "delete":
						diff(t, after, (*row)(nil))
					default:
						diff(t, after.untimed().Cells[0], c("new", int64(1)))
						diff(t, len(after.Cells) == 3, rule.exists && write != "put")
					}
				})
			}
		}
	}
}

func TestColumnConditionSeesVisibleCells(t *testing.T) {
	s := proving(t, "3.9.3", "3.9.5", "3.7.2")
	const day = 24 * 60 * 60
	tb := s.newTable(t, tableOptions{versions: 2, ttl: 5 * day, deviation: 100 * day})
	ago := func(days int64) int64 { return time.Now().UnixMilli() - days*day*1000 }
	k := tb.key("k", 1)
	at := ago(1)
	must(t, s.do(tb.put(k, v("a", 1, at), v("a", 2, at+1), v("a", 3, at+2), v("old", 1, ago(4)), c("b", 1))))
	must(t, s.alter(tb.name, newOptions(3*day, 2)))
	for name, x := range map[string]struct {
		condition tablestore.ColumnFilter
		want      refusal
	}{
		"the newest version":             {compare("a", eq, 3), accepted},
		"an older version":               {compare("a", eq, 2), conditionFailed},
		"any version":                    {anyVersion(compare("a", eq, 2)), accepted},
		"a surplus version":              {anyVersion(compare("a", eq, 1)), conditionFailed},
		"a version beyond its time":      {compare("old", eq, 1), conditionFailed},
		"and a missing column may pass":  {lenient(compare("old", eq, 2)), accepted},
		"the type counts":                {compare("a", eq, "3"), conditionFailed},
		"the type counts, also as false": {not(compare("a", eq, "3")), accepted},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, s.do(when(x.condition, tb.update(k, set("z", 1)))), x.want)
			checkRow(t, tb.rows(t, when(x.condition, tb.update(k, set("z", 1))))[0], x.want)
		})
	}
	t.Run("the value of a key column", func(t *testing.T) {
		skipReal(t, s)
		must(t, s.do(when(compare("pk2", eq, 1), tb.update(k, set("z", 1)))))
		check(t, s.do(when(compare("pk2", eq, 2), tb.update(k, set("z", 1)))), conditionFailed)
		check(t, s.do(when(compare("pk2", eq, 9), tb.put(tb.key("k", 9)))), conditionFailed)
	})
	t.Run("a row whose versions have all expired does not exist", func(t *testing.T) {
		gone := tb.key("gone", 1)
		live := func(days int) { must(t, s.alter(tb.name, newOptions(days*day, 2))) }
		live(7)
		must(t, s.do(tb.put(gone, v("a", 1, ago(6)))))
		live(5)
		check(t, s.do(when(compare("a", eq, 1), tb.delete(gone))), conditionFailed)
		must(t, s.do(when(lenient(compare("a", eq, 2)), expecting(expectNotExist, tb.put(gone)))))
	})
}

// race makes writers send changes at the same time, and returns how many succeed. The others' conditions must fail.
func (tb *table) race(t *testing.T, writers int, change func(writer int) tablestore.RowChange) (accepted int) {
	t.Helper()
	results := make(chan error, writers)
	for i := range writers {
		go func() { results <- tb.do(change(i)) }()
	}
	for range writers {
		if err := <-results; err == nil {
			accepted++
		} else {
			check(t, err, conditionFailed)
		}
	}
	return accepted
}

func TestConditionAndWriteAreAtomic(t *testing.T) {
	tb := proving(t, "3.9.2", "3.9.3").newTable(t, tableOptions{})
	const writers, steps = 8, 20
	t.Run("one of many that expect no row succeeds", func(t *testing.T) {
		diff(t, tb.race(t, 2*writers, func(i int) tablestore.RowChange {
			return expecting(expectNotExist, tb.put(tb.key("new", 1), c("writer", i)))
		}), 1)
	})
	t.Run("one of many that compare and set succeeds", func(t *testing.T) {
		k := tb.key("set", 1)
		must(t, tb.do(tb.put(k, c("ver", 0))))
		for step := range steps {
			diff(t, tb.race(t, writers, func(i int) tablestore.RowChange {
				if i%2 == 0 {
					return when(compare("ver", eq, step), tb.update(k, add("ver", 1), set("writer", i)))
				}
				return when(compare("ver", eq, step), tb.update(k, set("ver", step+1), set("writer", i)))
			}), 1)
		}
		diff(t, tb.values(t, k).Cells[0], c("ver", int64(steps)))
	})
	t.Run("increments are all counted", func(t *testing.T) {
		for range steps / 2 {
			diff(t, tb.race(t, writers, func(int) change { return tb.update(tb.key("sum", 1), add("n", 1)) }), writers)
		}
		diff(t, tb.values(t, tb.key("sum", 1)).Cells, []cell{c("n", int64(writers*steps/2))})
	})
}
