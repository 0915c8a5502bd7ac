package commands

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"example.com/tsimport/bench"
	"example.com/tsimport/cmd/tsimport/advise"
	"example.com/tsimport/internal/conformance"
)

var quoted = regexp.MustCompile(`(?:'[^']*'|[^' ])+`)

// TestEveryAdvisedCommandCanBePlanned: for files with a key and databases the command has exactly their whole key.
func TestEveryAdvisedCommandCanBePlanned(t *testing.T) {
	conformance.NotForRaces(t)
	root := conformance.Try(filepath.Abs("../../..")).Must(t)
	tsimport := commandsIn(t)
	var inputs []string
	alike := map[string]bool{} // one of each kind in each folder
	for _, dir := range []string{"examples", "reader/testdata"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if info, err := d.Info(); err == nil && info.Size() < 100_000 && !alike[filepath.Dir(path)+filepath.Ext(path)] {
				alike[filepath.Dir(path)+filepath.Ext(path)] = true
				inputs = append(inputs, path)
			}
			return nil
		})
		must(t, err)
	}
	for _, order := range []bench.Order{bench.Sorted, bench.Arrival, bench.Random} {
		var text strings.Builder
		must(t, (bench.StudentCards{Rows: 3000, Order: order, Seed: 3}).WriteCSV(t.Context(), &text))
		put(t, string(order)+".csv", text.String())
		inputs = append(inputs, string(order)+".csv")
	}
	const many = " WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) SELECT "
	databaseIn(t, "CREATE TABLE geo (region TEXT, city TEXT, area_code INT, PRIMARY KEY (region, city))",
		"INSERT INTO geo"+many+"'r' || i % 7, 'c' || i, i % 90 FROM n",
		"CREATE TABLE orders (shop INT, at TEXT, order_no INT, v, PRIMARY KEY (shop, at, order_no))",
		"INSERT INTO orders"+many+"i % 3, datetime(1700000000 + i / 4, 'unixepoch'), i % 4, i FROM n",
		"CREATE TABLE digits (code TEXT, shop_id TEXT, PRIMARY KEY (code, shop_id))",
		"INSERT INTO digits"+many+"i, 's' || i % 5 FROM n",
		"CREATE TABLE five (a INT, b TEXT, c INT, d INT, e_id INT, PRIMARY KEY (a, b, c, d, e_id))",
		"INSERT INTO five"+many+"i % 2, 'b' || i % 3, i % 5, i % 7, i FROM n",
		"CREATE TABLE seq (id INTEGER PRIMARY KEY, user_id INT)", "INSERT INTO seq"+many+"i, i % 50 FROM n")
	for table, args := range map[string]string{"geo": "", "orders": "", "digits": "", "five": "",
		"seq": "--candidates id,user_id,user_id+id"} {
		inputs = append(inputs, "sqlite:shop.db?table="+table+" "+args)
	}
	planned, seen := 0, map[string]int{}
	for _, input := range inputs {
		args := append([]string{"advise"}, strings.Fields(input)...)
		var out, errOut strings.Builder
		if Run(append([]string{"tsimport"}, append(args, "--json", "--growth", "50")...), &out, &errOut) != 0 {
			continue // it is not for loads as it is
		}
		var report struct {
			Candidates []struct{ Fix, Key *struct{ Command string } }
			Design     *struct{ Command, Unique string }
		}
		conformance.MustEqual(t, json.Unmarshal([]byte(out.String()), &report), nil, "%s", input)
		var commands []string
		for _, c := range report.Candidates {
			if c.Fix != nil {
				commands = append(commands, c.Fix.Command)
			}
			if c.Key != nil {
				commands = append(commands, c.Key.Command)
			}
		}
		if report.Design != nil {
			commands = append(commands, report.Design.Command)
		}
		for _, command := range commands {
			words := quoted.FindAllString(command, -1)
			for i := range words {
				words[i] = strings.ReplaceAll(words[i], "'", "")
			}
			for words[0] != "load" {
				words = words[1:]
			}
			var out, errOut strings.Builder
			code := Run(append([]string{"tsimport"}, append(words, "--dry-run", "-q", "--max-errors", "-1")...), &out, &errOut)
			conformance.True(t, code == 0 || code == 3, "%s: exit code %d: %s\n%s", input, code, command, errOut.String())
			planned++
			if strings.HasPrefix(input, "sqlite") {
				seen[strings.Fields(input)[0]]++
				conformance.True(t, !strings.Contains(errOut.String(), "warning"), "%s: %s\n%s", input, command, errOut.String())
			}
		}
	}
	conformance.True(t, planned >= 30 && len(seen) == 5, "%d commands were planned, of databases %v", planned, seen)
	holds(t, tsimport(0, "advise", "sqlite:shop.db?table=geo"), "so it stays unique", "--pk region")
	_ = os.Remove("shop.db")
}

func advice() *advise.Report {
	return &advise.Report{Files: []string{"a.csv"}, Rows: 1000, Partitions: 4, Rate: 4000, Growth: 1,
		Candidates: []*advise.Candidate{
			{Column: "user\x1b[2J", Verdict: advise.Recommended, Reason: strings.Repeat("many words ", 20), Share: 0.5,
				Load: 0.25, Facts: advise.Facts{Distinct: 900}},
			{Column: "price", Verdict: advise.NotRecommended, Reason: "double"},
		}}
}

func TestAdviceWithoutATerminalIsPlainAndUncut(t *testing.T) {
	var b strings.Builder
	must(t, newAdvicePrinter(&b).print(advice()))
	conformance.True(t, !strings.Contains(b.String(), "\x1b") &&
		strings.Contains(b.String(), "██████░░░░░░  50.0%   25.0%") &&
		strings.Contains(b.String(), strings.TrimSpace(strings.Repeat("many words ", 20))), "printed:\n%s", b.String())
}

func TestAdviceFoldsItsSentencesToTheTerminal(t *testing.T) {
	var b strings.Builder
	p := &advicePrinter{w: &b, width: 60, colour: true}
	must(t, p.print(advice()))
	conformance.True(t, strings.Contains(b.String(), "\x1b[32m recommended") && !strings.Contains(b.String(), "\x1b[2J"),
		"printed %q", b.String())
	for line := range strings.Lines(b.String()) {
		conformance.True(t, !strings.Contains(line, "many words") || utf8.RuneCountInString(line) <= 61,
			"%d characters in a line: %s", utf8.RuneCountInString(line), line)
	}
}

func TestLineWithoutSpacesIsCutAtTheWidth(t *testing.T) {
	lines := fold(strings.Repeat("x", 50)+" end", 20)
	conformance.True(t, len(lines) == 3 && lines[0] == strings.Repeat("x", 20) &&
		lines[2] == strings.Repeat("x", 10)+" end", "folded into %q", lines)
}
