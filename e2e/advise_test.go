//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// advised are inputs whose advice needs every kind of fix. Each row has a key of its own.
var advised = []struct {
	name, file, header string
	row                func(i int) string
	args               []string
	fixes              []string // names that must be there
}{
	{"devices beyond 10 GB", "p.csv", "DeviceID,SellerID,CardID,OrderNumber", func(i int) string {
		return fmt.Sprintf("%d,S%d,%d,%d", i*7919%500, i*7919%500%10, 100000+i*31%5000, i*2477%20000)
	}, []string{"--growth", "5e6"}, []string{"splice"}},
	{"cohorts", "c.csv", "cohort,card,bought_at", func(i int) string {
		return fmt.Sprintf("%d,u%d,2026-%02d-%02d 10:%02d:%02d", i/200, i*2477%20000, 1+i/2000, 1+i%2000/100, i%100/60, i%60)
	}, nil, []string{"table per period", "hash prefix"}},
	{"names that are no words", "n.csv", "unit price,len,user=id,a.b-c", func(i int) string {
		return fmt.Sprintf("s%d,%d,u%d,x%d", i%7, i, i*2477%1000, i*31%20000)
	}, nil, []string{"hash prefix"}},
	{"long values", "l.csv", "id,n", func(i int) string {
		return fmt.Sprintf("%s%d,%d", strings.Repeat("l", 1025), 100000+i*2477%2000, i)
	}, nil, []string{"hash"}},
	{"separators and signs", "s;x.csv", "shop;order_no;area_code", func(i int) string {
		return fmt.Sprintf("a, b%d;%d;%d", i*i%5, i*2477%20000-10000, i*31%900-450)
	}, []string{"--delimiter", ";"}, nil},
}

func TestEveryCommandThatIsAdvisedLoadsTheInput(t *testing.T) {
	t.Parallel()
	for _, tt := range advised {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			var b strings.Builder
			b.WriteString(tt.header + "\n")
			rows := 6000
			if tt.file == "l.csv" {
				rows = 2000
			}
			for i := range rows {
				b.WriteString(tt.row(i) + "\n")
			}
			must(t, os.WriteFile(filepath.Join(dir, tt.file), []byte(b.String()), 0o644))
			cmd := exec.Command(binary, append([]string{"advise", tt.file, "--json"}, tt.args...)...)
			cmd.Dir = dir
			out, err := cmd.Output()
			must(t, err)
			var report struct {
				Candidates []struct {
					Column string
					Fix    *struct{ Name, Command string }
					Key    *struct{ Command string }
				}
				Design *struct{ Command, Unique string }
			}
			must(t, json.Unmarshal(out, &report))
			commands, names := map[string]string{}, ""
			for _, c := range report.Candidates {
				if c.Fix != nil {
					commands[c.Column+", "+c.Fix.Name] = c.Fix.Command
					names += c.Fix.Name + ";"
				}
				if c.Key != nil {
					commands[c.Column] = c.Key.Command
				}
			}
			for _, name := range tt.fixes {
				if !strings.Contains(names, name+";") {
					t.Errorf("no fix %s among %s", name, names)
				}
			}
			if report.Design == nil || !strings.Contains(report.Design.Unique, "unique in this file") {
				t.Fatalf("design %+v", report.Design)
			}
			commands["design"] = report.Design.Command
			text := exec.Command(binary, append([]string{"advise", tt.file}, tt.args...)...)
			text.Dir = dir
			printed, err := text.Output()
			must(t, err)
			n := 0
			for what, command := range commands {
				if !strings.Contains(string(printed), command+"\n") || command == "" {
					t.Errorf("%s: %q is not printed in\n%s", what, command, printed)
					continue
				}
				n++
				// Each row has a key that no row had before it, or it is rejected.
				line := fmt.Sprintf("%s -q --store store%d --condition not-exist", command, n)
				run := exec.Command("bash", "-c", line)
				run.Dir = dir
				if out, err := run.CombinedOutput(); err != nil {
					t.Errorf("%s: %v: %s\n%s", what, err, line, out)
				}
			}
		})
	}
}
