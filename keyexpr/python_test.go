package keyexpr

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tsimport/internal/table"
)

// pythonCheck computes the formulas of a case and prints those that give another key.
const pythonCheck = `
import json, sys
for case in json.load(sys.stdin):
    env = {}
    for line in case["setup"] or []:
        exec(line, env)
    for row, want in zip(case["rows"], case["keys"]):
        scope = dict(env, row=row, **row)
        try:
            got = str(eval(case["python"], scope))
        except Exception as e:
            got = repr(e)
        if got != want:
            print(case["source"], case["python"], row, "is", want, "and in Python", got)
`

func TestAReadersPythonComputesTheKeysOfTheLoad(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs python3")
	}
	t.Chdir(t.TempDir())
	must(t, os.WriteFile("codes.csv", []byte("Zoë,z\n"), 0o600))
	rows := [][]table.Value{row(nil)}
	for i, text := range []string{"straße", "İiΣ", "中,文\U0001f600", "", "Zoë"} {
		sign := int64(1 - i%2*2)
		rows = append(rows, row(map[string]table.Value{"CardID": num(sign * int64(i) * 7919), "Name": str(text), "Paid": yesno(i%2 == 0),
			"Score": dbl([]float64{0, -2, 1e22, 1.5e-9, 123456789012345680}[i]), "订单号": [...]table.Value{str("a"), {}}[i%2]}))
	}
	var cases []map[string]any
	for _, source := range []string{`pad(CardID, 6, signed)`, `splice(",", pad(DeviceID,6), SellerID, CardID)`, `md5(OrderNumber,4) + text(OrderNumber)`,
		`sha256(Score, 9)`, `crc32(Paid)`, `bucket(CardID, 100)`, `bucket(Score, 100)`, `bucket(Name, 7)`, `salt(1000)`, `salt(1000, 订单号, Score, Paid, Name)`,
		`desc(OrderNumber)`, `desc(OrderNumber, "text")`, `lookup(Name, "codes.csv", "keep")`, `text(Score)`, `text(Paid)`, `lower(Name)`, `upper(Name)`,
		`substr(Name, 2)`, `reverse(Name)`, `reverse(OrderNumber)`, `CardID % 7`, `CardID % -7`, `CardID - CardID % 3600`, `text(Paid && CardID > 5 || not (Score < 2))`,
		`col("unit price") * -3 + CardID`, `format_time(CardID, "2006010215", "s")`, `format_time(CardID, "v2-%Y%%%j%f", "ms", "Asia/Shanghai")`,
		`year("2021-11-07T23:30:00-05:00", "Asia/Shanghai") + month("2021-11-07 10:30")`, `Paid ? Name : SellerID`, `订单号 ?? "none"`, `text(订单号 == nil)`} {
		d := design(t, Env{Columns: inputs, SaltColumns: []string{"CardID", "SellerID"}}, "k="+source)
		x := Explain(d, nil, nil)
		if x.Key[0].Python == "" {
			t.Errorf("%s: no formula", source)
		}
		var keys []string
		var values []map[string]any
		for _, r := range rows {
			v, why := d.Programs[0].NewEvaluator().Eval(r)
			if why != nil {
				t.Fatal(why)
			}
			keys = append(keys, string(appendText(nil, v)))
			set := map[string]any{}
			for i, in := range inputs {
				if set[in.Name] = box(r[i]); in.Type == table.Binary {
					delete(set, in.Name)
				}
			}
			values = append(values, set)
		}
		cases = append(cases, map[string]any{"source": source, "setup": x.PythonSetup, "python": x.Key[0].Python, "rows": values, "keys": keys})
	}
	data, err := json.Marshal(cases)
	must(t, err)
	// JSON has no whole doubles, and Python must get what a driver gives it.
	check := strings.Replace(pythonCheck, "scope = dict", `row["Score"] = float(row["Score"]); scope = dict`, 1)
	cmd := exec.CommandContext(t.Context(), python, "-c", check)
	cmd.Dir, cmd.Stdin = filepath.Clean("."), bytes.NewReader(data)
	out, err := cmd.CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
