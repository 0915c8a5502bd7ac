package input

import (
	"slices"
	"testing"
)

func TestPartitionFoldersBecomeColumnsInTheirOrder(t *testing.T) {
	tree(t, "run=9/data/dt=2024-01-01/sub/h=05/x.csv", "run=9/data/dt=2024-01-02/h=__HIVE_DEFAULT_PARTITION__/x.csv")
	t.Chdir("run=9")
	first := []Column{{Name: "dt", Value: "2024-01-01"}, {Name: "h", Value: "05"}}
	second := []Column{{Name: "dt", Value: "2024-01-02"}, {Name: "h", Null: true}}
	for _, args := range [][]string{{"data"}, {"."}, {"data/**/*.csv"}, {"data/dt=*"}, {"data/dt=2024-01-01", "data/dt=2024-01-02"}} {
		set := expand(t, Options{PathColumns: true}, args...)
		if len(set.Items) != 2 || !slices.Equal(set.Items[0].Columns, first) || !slices.Equal(set.Items[1].Columns, second) {
			t.Errorf("%q: %+v", args, set.Items)
		}
	}
	// A file named alone has the columns that lead to it without a gap.
	if c := expand(t, Options{PathColumns: true}, "data/dt=2024-01-01/sub/h=05/x.csv").Items[0].Columns; !slices.Equal(c, first[1:]) {
		t.Errorf("columns %+v", c)
	}
	if c := expand(t, Options{}, "data").Items[0].Columns; c != nil {
		t.Errorf("columns %+v without the option", c)
	}
}

func TestPartitionNamesAndValuesAreDecoded(t *testing.T) {
	for folder, want := range map[string]Column{
		"ts=2024-01-01 10%3A00%3A00": {Name: "ts", Value: "2024-01-01 10:00:00"},
		"a%3Db=c%2Fd":                {Name: "a=b", Value: "c/d"},
		"p=100%":                     {Name: "p", Value: "100%"},
		"p=%zz%20+":                  {Name: "p", Value: "%zz +"},
		"p=":                         {Name: "p"},
		"p=a=b":                      {Name: "p", Value: "a=b"},
		"p=%E4%B8%AD":                {Name: "p", Value: "中"},
	} {
		if got, ok := partition(folder); !ok || got != want {
			t.Errorf("%s: %+v, want %+v", folder, got, want)
		}
	}
	for _, folder := range []string{"plain", "=v", ""} {
		if _, ok := partition(folder); ok {
			t.Errorf("%q is a partition", folder)
		}
	}
}

func TestPartitionFoldersThatContradictAreRefused(t *testing.T) {
	tree(t, "a/p=1/p=2/x.csv", "b/p=%FF/x.csv")
	for arg, part := range map[string]string{"a": "two folders give p", "b": "not UTF-8"} {
		_, err := Expand(t.Context(), []string{arg}, Options{PathColumns: true})
		wantError(t, err, nil, arg+"/p=", part)
		expand(t, Options{}, arg)
	}
}
