package spread

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tsimport/internal/table"
)

// computedSet is a file whose key columns are those of --pk.
func computedSet(t *testing.T, text string, pk ...string) (d *dataset, why string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.csv")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	d = &dataset{path: path, pk: pk}
	for _, k := range pk {
		name, _, _ := strings.Cut(k, "=")
		d.key = append(d.key, table.KeyColumn{Name: name, Type: table.String})
	}
	return d, d.readHeader(map[string]table.Type{"card": table.Integer, "n": table.Integer})
}

func TestTheSDKLoadsRowsWhoseKeyIsComputed(t *testing.T) {
	d, why := computedSet(t, "\ufeffcard,seller,n\n7,a,1\n-1,b,2\n8,c,3\n", `k=splice(",", pad(card, 3), seller)`, "s=salt(1000)")
	if why != "" {
		t.Fatal(why)
	}
	var got []string
	b := &baseline{data: d}
	must(t, d.each(t.Context(), d.path, func(values []table.Value) error {
		change := b.change(values)
		key := change.PrimaryKey.PrimaryKeys
		got = append(got, key[0].Value.(string)+" "+key[1].Value.(string))
		if len(key) != 2 || len(change.Columns) != 3 {
			t.Errorf("%d key columns, %d others", len(key), len(change.Columns))
		}
		return nil
	}))
	if want := "007,a 787; 008,c 250"; strings.Join(got, "; ") != want {
		t.Errorf("keys %q, want %q: a record that a load rejects is left out", got, want)
	}
}

func TestAComputedKeyThatTheSDKCannotLoadSaysWhy(t *testing.T) {
	for pk, says := range map[string]string{"card=text(card)": "another name", "k=splice(auto, seller, seller)": "in place of auto", "k=pad(crad, 3)": "did you mean card"} {
		if d, why := computedSet(t, "card,seller,n\n7,a,1\n", pk); !strings.Contains(why, says) || d.columns != nil {
			t.Errorf("%s: %q, want %q", pk, why, says)
		}
	}
}
