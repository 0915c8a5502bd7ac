package keyexpr

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"tsimport/internal/table"
)

func TestAProgramServesManyWorkers(t *testing.T) {
	p := compile(t, `trim(SellerID) + pad(CardID, 9) + salt(7) + (split(Name, "x")[0] | upper())`)
	var group sync.WaitGroup
	for worker := range int64(4) {
		group.Go(func() {
			e := p.NewEvaluator()
			for i := range int64(200) {
				card := worker*1000 + i
				v, why := e.Eval(row(map[string]table.Value{"CardID": num(card)}))
				if want := fmt.Sprintf("a100%09d", card); why != nil || !strings.HasPrefix(string(v.Bytes), want) {
					t.Errorf("%q, %v, want %s…", v.Bytes, why, want)
				}
			}
		})
	}
	group.Wait()
}

func TestADeepExpressionCompilesWithoutGrowing(t *testing.T) {
	deep := `pad(CardID, 5, signed)`
	for range 200 {
		deep = `(` + deep + ` ?? Name)`
	}
	p := compile(t, deep)
	if n := len(p.root.python) + len(p.root.recipe); n > 2*maxRecipe {
		t.Errorf("%d bytes of explanation", n)
	}
	if got := eval(t, deep, map[string]table.Value{"CardID": {}}); got != "Zoë" {
		t.Errorf("gives %q", got)
	}
}

func TestPlainFunctionsAllocateNothing(t *testing.T) {
	for _, source := range []string{`splice(",", pad(DeviceID, 6), SellerID, CardID)`, `md5(OrderNumber, 4) + text(OrderNumber)`,
		`salt(100) + reverse(CardID) + substr(Name, 1, 2) + upper(Name)`, `format_time(OrderNumber, "2006010215", "s")`, `desc(CardID)`,
		`Score > 2 ? xxhash(Name, 4) : crc32(Name, 4)`} {
		e := compile(t, source).NewEvaluator()
		values := row(nil)
		var why *table.Reason
		if n := testing.AllocsPerRun(100, func() { _, why = e.Eval(values) }); n != 0 || why != nil {
			t.Errorf("%s: %v allocations, %v", source, n, why)
		}
	}
}
