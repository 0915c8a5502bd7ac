package contract

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const protocolFile = "../../docs/protocol.md"

// protocol is the numbers of docs/protocol.md in order: sections as "3.8" and their rules as "3.8.2".
var protocol = sync.OnceValues(func() (numbers map[string]bool, err error) {
	text, err := os.ReadFile(protocolFile)
	numbers = map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^(?:### |- \*\*)(\d+\.\d+(?:\.\d+)?)`).FindAllSubmatch(text, -1) {
		numbers[string(m[1])] = true
	}
	return numbers, err
})

// spec names the rules of docs/protocol.md that a case proves. A number that is not there fails the test.
func spec(t testing.TB, rules ...string) {
	t.Helper()
	numbers, err := protocol()
	must(t, err)
	for _, r := range rules {
		if !numbers[r] {
			t.Errorf("docs/protocol.md has no rule %s", r)
		}
	}
}

// proving opens the service for a test that proves rules, beside others.
func proving(t *testing.T, rules ...string) *service {
	t.Helper()
	spec(t, rules...)
	t.Parallel()
	return openService(t)
}

// elsewhere is the rules that are proven where a process, a clock or a simulation can be had: a file and a test of it.
var elsewhere = map[string][2]string{
	"1.1.6": {"../../e2e/serve_test.go", "TestAStoreHasOneServer"},
	"5.1.3": {"../server/simulate_test.go", "TestASplitPartitionIsAwayAndThenTheChildrenServe"},
	"6.1.1": {"../wire/proto_test.go", "TestEveryCodeHasItsStatusAndMessage"},
	"6.1.2": {"../server/faults_test.go", "TestFaultsOfTheWholeRequest"},
}

var ruleNumber = regexp.MustCompile(`^[1-6]\.\d+\.\d+$`)

// TestEveryRuleHasACase reads the suite's source: every test names rules, and every rule of sections 1 to 6 is named by
// a test, or proven elsewhere.
func TestEveryRuleHasACase(t *testing.T) {
	numbers, err := protocol()
	must(t, err)
	named := rulesNamed(t)
	for r := range numbers {
		if ruleNumber.MatchString(r) && !named[r] && elsewhere[r][0] == "" {
			t.Errorf("no case names rule %s", r)
		}
	}
	for r, where := range elsewhere {
		text, err := os.ReadFile(where[0])
		must(t, err)
		if !strings.Contains(string(text), "func "+where[1]+"(") || !numbers[r] {
			t.Errorf("rule %s: %s has no %s", r, where[0], where[1])
		}
	}
}

// rulesNamed is the rules that tests of the suite name; a test that names neither rule nor section fails.
func rulesNamed(t *testing.T) map[string]bool {
	t.Helper()
	number := regexp.MustCompile(`^\d+\.\d+(\.\d+)?$`)
	named := map[string]bool{}
	files, err := filepath.Glob("*_test.go")
	must(t, err)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		must(t, err)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Name.Name == "TestEveryRuleHasACase" || f.Name.Name == "TestMain" || name == "assumptions_test.go" {
				continue
			}
			some := false
			ast.Inspect(f, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					if id, ok := call.Fun.(*ast.Ident); ok && (id.Name == "spec" || id.Name == "proving") {
						for _, a := range call.Args {
							lit, ok := a.(*ast.BasicLit)
							if !ok {
								continue
							}
							if s, err := strconv.Unquote(lit.Value); err == nil && number.MatchString(s) {
								named[s], some = true, true
							}
						}
					}
				}
				return true
			})
			if strings.HasPrefix(f.Name.Name, "Test") && !some {
				t.Errorf("%s: %s names no paragraph: call spec or proving", name, f.Name.Name)
			}
		}
	}
	return named
}
