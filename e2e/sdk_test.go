//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
)

// required names the SDK that must be tested, or the test fails: make node, make python and make java set it.
const required = "TSIMPORT_TEST_SDK"

// runSDK runs a script of another language against a server of its own, whose access key is none of the built-in ones.
func runSDK(t *testing.T, dir, program string, args ...string) (printed string) {
	t.Helper()
	t.Setenv("TABLESTORE_ACCESS_KEY_SECRET", "a-secret-of-the-test")
	s := startServe(t, "--quiet", "--instance", "sdk-test", "--access-key-id", "SDK.test-1")
	conformance.Equal(t, s.AccessKeySecret, "(from-environment)", "the ready line shows the secret")
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = slices.Concat(os.Environ(), []string{
		"TABLESTORE_ENDPOINT=" + s.URL, "TABLESTORE_INSTANCE=" + s.Instance, "TABLESTORE_ACCESS_KEY_ID=" + s.AccessKeyID,
	})
	r := begin(t, cmd)
	conformance.Equal(t, r.wait(), 0, "%s %q: exit code\n%s", program, args, &r.said)
	return r.said.String()
}

// TestTheSamplesOfTheLocalEngineAreFilesThatTestsRun compares the page's code with files: the Go test runs with its room, the others in
// TestTheNodeSDK and so on.
func TestTheSamplesOfTheLocalEngineAreFilesThatTestsRun(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/how-to/local-engine.md")
	must(t, err)
	for language, file := range map[string]string{
		"go": "../engine/enginetest/orders_test.go", "python": "python/orders.py", "javascript": "node/orders.js", "java": "java/src/main/java/Orders.java",
	} {
		code, err := os.ReadFile(file)
		must(t, err)
		sample := strings.Replace(string(code), "package enginetest_test\n", "package shop\n", 1)
		if !strings.Contains(string(page), "\n```"+language+"\n"+sample+"```\n") {
			t.Errorf("docs/how-to/local-engine.md does not show %s", file)
		}
	}
}

// testSDK runs the checks of a language and its sample, or is skipped where installed is not there.
func testSDK(t *testing.T, language, installed, program string, check, sample []string) {
	t.Helper()
	if _, err := os.Stat(installed); err != nil && os.Getenv(required) != language {
		t.Skipf("the SDK is not installed; make %s installs it and runs this", language)
	}
	runSDK(t, language, program, check...)
	if out := runSDK(t, language, program, sample...); !strings.HasSuffix(out, "tea\n") {
		t.Errorf("%s %q prints %q", program, sample, out)
	}
}

func TestTheNodeSDKTakesTheServerForTheService(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil && os.Getenv(required) != "node" {
		t.Skip("there is no node on this machine; make node runs this")
	}
	testSDK(t, "node", "node/node_modules/tablestore", "node", []string{"--test", "sdk.test.js"}, []string{"orders.js"})
}

func TestThePythonSDKTakesTheServerForTheService(t *testing.T) {
	python, err := filepath.Abs("python/venv/bin/python")
	must(t, err)
	testSDK(t, "python", python, python, []string{"sdk_check.py"}, []string{"orders.py"})
}

func TestTheJavaSDKTakesTheServerForTheService(t *testing.T) {
	java := func(class string) []string { return []string{"-cp", "target/classes:target/lib/*", class} }
	testSDK(t, "java", "java/target/classes/SdkCheck.class", "java", java("SdkCheck"), java("Orders"))
}
