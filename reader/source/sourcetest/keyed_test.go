package sourcetest

import (
	"context"
	"testing"

	"tsimport/reader/source"
)

func TestKeyedRowsKeepTheContract(t *testing.T) {
	for _, live := range []bool{false, true} {
		k := NewKeyed("keyed", 95)
		k.Live, k.Parts = live, 2
		division, err := k.Divide(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for part := range 2 {
			Check(t, func() source.Source {
				parts, err := k.Open(context.Background(), division)
				if err != nil {
					t.Fatal(err)
				}
				return parts[part]
			})
		}
	}
}
