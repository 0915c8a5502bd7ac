package reader

import (
	"context"
	"slices"
	"strings"
	"testing"

	tcsv "tsimport/reader/csv"
)

func TestAHeaderThatMayBeDataIsNotedOrRefused(t *testing.T) {
	const nothing, noted, refused = "", "noted", "refused"
	for name, tt := range map[string]struct {
		text string
		o    Options
		want string
	}{
		"names":                       {"id,v\n1,a\n", Options{}, nothing},
		"a number":                    {"1,Smith\n2,Jones\n", Options{}, noted},
		"numbers and a date":          {"1,Smith,2006-02-15\n2,Jones,2006-02-16\n", Options{}, refused},
		"said to be data":             {"1,Smith,2006-02-15\n2,Jones,2006-02-16\n", Options{NoHeader: true}, nothing},
		"a number twice":              {"1,1,x\n2,3,y\n", Options{}, refused},
		"a decimal":                   {"x,1.5\ny,2.5\n", Options{}, refused},
		"a date over text":            {"x,2006-02-15\ny,none\n", Options{}, nothing},
		"a date beside a named count": {"n,2006-02-15\n1,2006-02-16\n", Options{}, noted},
		"a number without others":     {"1,Unknown,\\N\n2,x,y\n", Options{}, refused},
		"integers among decimals":     {"x,7\na,1\nb,2.5\nc,3\n", Options{}, noted},
		"a number over words":         {"x,7\na,1\nb,word\n", Options{}, nothing},
		"years":                       {",2010,2011\nChina,1,2\n", Options{}, nothing},
		"a year":                      {",2019\nChina,1.5\n", Options{}, nothing},
		"rising numbers":              {"name,1,2,3\nx,4,5,6\n", Options{}, noted},
		"an index without a name":     {",a\n0,1.5\n1,2.5\n", Options{}, nothing},
		"an empty name over gaps":     {"a,,c\nx,,1\ny,z,2\n", Options{}, noted},
		"an empty name over words":    {"a,,c\nx,,y\ny,z,w\n", Options{}, noted},
		"null in the first line":      {"-1,Unknown,\\N,2.5\n1,x,\\N,3.5\n", Options{}, refused},
	} {
		t.Run(name, func(t *testing.T) {
			s := opened(t, itemOf(t, "in.csv", []byte(tt.text)), tt.o)
			got := nothing
			if strings.Contains(strings.Join(s.Notes, " "), "--no-header") {
				got = noted
			}
			if s.Doubt != "" {
				got = refused
			}
			if got != tt.want {
				t.Errorf("%q: %q, %q", got, s.Notes, s.Doubt)
			}
		})
	}
}

func TestBlanksAroundQuotesBelongToTheDelimiterWithTrim(t *testing.T) {
	text := "id, \"v\" ,w\n1, \"a, \"\"b\"\"\nc\"\t,2\n\"3\" ,  x\"y\" , \" \" \r\n4,\t, \"d\" e\n"
	columns, rows := valuesOf(t, itemOf(t, "in.csv", []byte(text)), Options{TrimNames: true})
	want := [][]string{{"1", "a, \"b\"\nc", "2"}, {"3", "  x\"y\" ", " "}, {"BadQuote"}}
	if !slices.Equal(columns, []string{"id", "v", "w"}) || !slices.EqualFunc(rows, want, slices.Equal) {
		t.Errorf("%q, %q", columns, rows)
	}
	tabs := Options{TrimNames: true, Dialect: tcsv.Dialect{Delimiter: "\t", Quote: '"'}}
	if _, rows = valuesOf(t, itemOf(t, "in.csv", []byte("a\tb\n \"x\ty\" \t\n")), tabs); !slices.EqualFunc(rows, [][]string{{"x\ty", ""}}, slices.Equal) {
		t.Errorf("%q", rows)
	}
	for text, hint := range map[string]bool{
		"id,v\n1, \"a\"\n": true, "id,v\n1, \"a,b\"\n": true, "id, \"v\"\n1,a\n": true, "id,v\n1, \"a\" b\n": false, "id,v\n1,\" \"\"a\"\"\"\n": false,
	} {
		s, err := Open(context.Background(), itemOf(t, "in.csv", []byte(text)), Options{})
		if err != nil || strings.Contains(s.Hint, "--trim") != hint {
			t.Errorf("%q: hint %q, %v", text, s.Hint, err)
		}
	}
	item := fileOf(t, "in.csv", []byte("id,v\n"+strings.Repeat("1, \"a\nb\" \n2,c\n", 900)))
	keepsTheContract(t, item, Options{TrimNames: true, SplitBytes: 900})
}

func TestAnEmptyLineOfOneColumnIsARecordWithoutAValue(t *testing.T) {
	_, rows := valuesOf(t, itemOf(t, "in.csv", []byte("\na\n1\n\n2\r\n\r\n")), Options{})
	if want := [][]string{{"1"}, {""}, {"2"}, {""}}; !slices.EqualFunc(rows, want, slices.Equal) {
		t.Errorf("%q", rows)
	}
	if _, rows = valuesOf(t, itemOf(t, "in.csv", []byte("a,b\n1,2\n\n3,4\n")), Options{}); len(rows) != 2 {
		t.Errorf("of two columns: %q", rows)
	}
}
