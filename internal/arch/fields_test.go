package arch

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"testing"
)

const fieldsPage = "docs/fields.md"

// TestThePageOfFieldsHasEachField takes the names of all fields of summary.json and of /status from the files that hold them full.
func TestThePageOfFieldsHasEachField(t *testing.T) {
	root := filepath.Join("..", "..")
	text := read(t, filepath.Join(root, fieldsPage))
	named := map[string]bool{}
	for _, span := range codeSpan.FindAllStringSubmatch(fence.ReplaceAllString(string(text), ""), -1) {
		for _, name := range regexp.MustCompile(`[a-z_]+`).FindAllString(span[1], -1) {
			named[name] = true
		}
	}
	for _, file := range []string{"report-full.json", "state-full.json"} {
		full := read(t, filepath.Join(root, "pipeline", "testdata", file))
		var v any
		must(t, json.Unmarshal(full, &v))
		names := map[string]bool{}
		collectNames(v, names)
		if len(names) < 30 {
			t.Errorf("%s has only %d names", file, len(names))
		}
		for name := range names {
			if !named[name] {
				t.Errorf("%s does not name the field %s of %s", fieldsPage, name, file)
			}
		}
	}
}

func collectNames(v any, names map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, below := range v {
			names[name] = true
			collectNames(below, names)
		}
	case []any:
		for _, below := range v {
			collectNames(below, names)
		}
	}
}
