package datax

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"

	"example.com/tsimport/internal/conformance"
)

const orders = `{"job":{"setting":{"speed":{"channel":2},"errorLimit":{"record":0}},"content":[{
"reader":{"name":"txtfilereader","parameter":{"path":["/data/orders.csv"],"encoding":"UTF-8","fieldDelimiter":"|","skipHeader":"true",
"column":[{"index":0,"type":"long"},{"index":2,"type":"string"}]}},
"writer":{"name":"otswriter","parameter":{"endpoint":"https://shop.cn-hangzhou.ots.aliyuncs.com","accessId":"AKID","accessKey":"s3cret",
"instanceName":"shop","table":"orders","primaryKey":[{"name":"id","type":"int"}],"column":[{"name":"city","type":"string"}],"writeMode":"PutRow"}}}]}}`

var must = conformance.Must

func TestOtherJobsAreConverted(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want map[string]string
		from string
	}{
		"an update":                      {strings.Replace(orders, "PutRow", "UpdateRow", 1), map[string]string{"mode": "update", "on-null": "delete"}, "/data/orders.csv"},
		"a share of errors":              {strings.Replace(orders, `{"record":0}`, `{"percentage":0.07}`, 1), map[string]string{"max-errors": "7%"}, "/data/orders.csv"},
		"a null":                         {strings.Replace(orders, `"encoding"`, `"nullFormat":"\\N","encoding"`, 1), map[string]string{"null": `\N`, "quoted-null": `\N`, "empty": "string"}, "/data/orders.csv"},
		"an empty null":                  {strings.Replace(orders, `"encoding"`, `"nullFormat":"","encoding"`, 1), map[string]string{"null": "", "empty": "null", "quoted-empty": "null"}, "/data/orders.csv"},
		"a variable":                     {strings.Replace(orders, "/data/orders.csv", "/data/${day}.csv", 1), nil, "/data/${day}.csv"},
		"a number and a share of errors": {strings.Replace(orders, `{"record":0}`, `{"record":5,"percentage":0.02}`, 1), map[string]string{"max-errors": "5"}, "/data/orders.csv"},
	} {
		t.Run(name, func(t *testing.T) {
			j, err := Convert([]byte(c.text))
			must(t, err)
			l := j.File.Loads[0]
			for key, want := range c.want {
				conformance.Equal(t, l.Value(key), want, "%s", key)
			}
			if len(l.From) != 1 || l.From[0] != c.from {
				t.Errorf("from %q", l.From)
			}
			for _, s := range append(l.Settings, j.Target...) {
				if text := strings.Join(s.Values, " "); strings.Contains(text, "s3cret") || strings.Contains(text, "AKID") {
					t.Errorf("%s holds an access key", s.Key)
				}
			}
		})
	}
}

func TestATextFileJobIsConverted(t *testing.T) {
	j, err := Convert([]byte(orders))
	must(t, err)
	l := j.File.Loads[0]
	for key, want := range map[string]string{"pk": "id:integer", "names": "id,unused_1,city", "columns": "city", "delimiter": "|", "skip-lines": "1",
		"max-errors": "0", "create": "true", "null": "", "empty": "string", "type": "city=string"} {
		conformance.Equal(t, l.Value(key), want, "%s", key)
	}
	for _, s := range append(l.Settings, j.Target...) {
		if text := strings.Join(s.Values, " "); strings.Contains(text, "s3cret") || strings.Contains(text, "AKID") {
			t.Errorf("%s holds an access key", s.Key)
		}
	}
}

func TestWhatCouldDifferSilentlyIsRefusedByName(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"PutRow", "DeleteRow", "writeMode"},
		{`"writeMode":"PutRow"`, `"writeMode":"UpdateRow","newVersion":"true"`, "newVersion"},
		{"txtfilereader", "ossreader", "write the load by hand (docs/jobs.md): from: oss://BUCKET/OBJECT"},
		{"txtfilereader", "postgresqlreader", "by hand (docs/jobs.md): from: postgres://"},
		{"txtfilereader", "oraclereader", `reader "oraclereader": not converted; write the load by hand`},
		{"txtfilereader", "hdfsreader", "not converted"},
		{`"table":"orders"`, `"table":"orders","defaultTimestampInMillionSecond":1`, "defaultTimestampInMillionSecond"},
		{`"table":"orders"`, `"table":"orders","mode":"multiVersion"`, "several versions"},
		{`"type":"int"`, `"type":"binary"`, "binary"},
		{`{"index":2,"type":"string"}`, `{"index":2,"type":"date","format":"yyyy"}`, "format"},
		{`{"index":2,"type":"string"}`, `{"index":2,"type":"long"}`, "no equal"},
		{`{"index":2,"type":"string"}`, `{"value":"x","type":"string"}`, "value"},
		{`{"index":2,"type":"string"}`, `{"index":0,"type":"string"}`, "same index"},
		{"/data/orders.csv", "/data/order?.csv", "of wildcards * only"},
		{"/data/orders.csv", "data/*.csv", "from /"},
		{`"otswriter"`, `"txtfilewriter"`, "tsimport export"},
		{"/data/orders.csv", "/data/$day.csv", "write ${day}"},
		{"/data/orders.csv", "/data/${1day}.csv", "variable"},
		{`"UTF-8"`, `"Shift-JIS"`, "encoding"},
		{`{"record":0}`, `{"percentage":2}`, "percentage"},
		{`"content":[`, `"content":[{},`, "the first only"},
	} {
		_, err := Convert([]byte(strings.Replace(orders, c.from, c.to, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.to, err, c.want)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the error shows the access key", c.to)
		}
	}
}

func TestWildcardsReachAsFarAsThoseOfDataX(t *testing.T) {
	for theirs, ours := range map[string]string{
		"/data/*.csv": "/data/**/*.csv", "/data/*": "/data/**/*", "/data/${day}_*.csv": "/data/${day}_*.csv", "/data/**": "/data/**/*", "/data/**/*.csv": "/data/*/**/*.csv",
		"/data/*/orders.csv": "/data/*/**/orders.csv", "/data/dt=*/*/part*": "/data/dt=*/*/**/part*", "/*_a/b": "/**/*_a/b",
	} {
		j, err := Convert([]byte(strings.Replace(orders, "/data/orders.csv", theirs, 1)))
		must(t, err)
		if got := j.File.Loads[0].From; len(got) != 1 || got[0] != ours || !strings.Contains(strings.Join(j.Notes, "\n"), "path "+theirs) {
			t.Errorf("%s: from %q, notes %q", theirs, got, j.Notes)
		}
	}
}

// DataX takes the files below the folder before the first star whose whole names match, where a star is any text.
func TestWildcardsTakeTheFilesThatDataXTakes(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for _, f := range []string{"a.csv", "b.txt", "dt=1/a.csv", "dt=1/x/a.csv", "dt=2/part0", "dt=2/y/z/part1", "e_a/b", "f/e_a/b", "f/g/h/b.csv"} {
		name := filepath.Join(dir, f)
		must(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, nil, 0o600)))
		files = append(files, name)
	}
	for _, pattern := range []string{"*.csv", "*", "**", "**/*.csv", "*/a.csv", "dt=*/*/part*", "dt=*/*", "*_a/b", "f/*/b.csv", "f/*/*.csv", "none*"} {
		theirs := regexp.MustCompile("^" + strings.ReplaceAll(filepath.Join(dir, pattern), "*", ".*") + "$")
		var want []string
		for _, f := range files {
			if theirs.MatchString(f) {
				want = append(want, f)
			}
		}
		got, err := doublestar.FilepathGlob(new(Job).wildcard(dir+"/"+pattern), doublestar.WithFilesOnly())
		slices.Sort(got)
		if slices.Sort(want); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", pattern, got, err, want)
		}
	}
}

func TestAJobWithoutALimitOfErrorsSaysSo(t *testing.T) {
	for text, want := range map[string]bool{orders: false, strings.Replace(orders, `,"errorLimit":{"record":0}`, "", 1): true} {
		j, err := Convert([]byte(text))
		must(t, err)
		if said := strings.Contains(strings.Join(j.Notes, "\n"), "without a limit of errors"); said != want || (j.File.Loads[0].Value("max-errors") == "-1") != want {
			t.Errorf("%s: said %v, max-errors %s", text, said, j.File.Loads[0].Value("max-errors"))
		}
	}
}

func FuzzConvert(f *testing.F) {
	f.Add([]byte(orders))
	f.Add([]byte(`{"job":{"content":[{}]}}`))
	f.Add([]byte(`{"job":null}`))
	f.Add([]byte(fromTable))
	f.Add([]byte(fromDatabase("orders[0-3]", "")))
	f.Fuzz(func(t *testing.T, text []byte) {
		if j, err := Convert(text); err == nil && len(j.File.Loads) == 0 {
			t.Fatal("a job without a load")
		}
	})
}
