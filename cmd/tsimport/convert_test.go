package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tsimport/job"
	"tsimport/job/datax"
)

func TestAConvertedJobIsReadByRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "o.csv")
	if err := os.WriteFile(file, []byte("id|x|city\n7|a| Bern \n8|b|\\N\n9|c|\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(`{"job":{"content":[{"reader":{"name":"txtfilereader","parameter":{"path":["FILE"],"fieldDelimiter":"|","skipHeader":true,
"column":[{"index":0,"type":"long"},{"index":2,"type":"string"}]}},"writer":{"name":"otswriter","parameter":{"table":"orders",
"primaryKey":["id"],"column":[{"name":"city","type":"string"}],"writeMode":"PutRow"}}}]}}`, "FILE", filepath.ToSlash(file))
	j, err := datax.Convert([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	body, err := j.File.Marshal(jobVocabulary(), j.Target)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := job.Parse("job.yaml", body, jobVocabulary()); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
}
