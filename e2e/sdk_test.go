//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// sdkTimeout is how long another language's SDK may take over its script before it is killed and the test fails.
const sdkTimeout = 5 * time.Minute

// required names the SDK that must be tested, or the test fails: make node, make python and make java set it.
const required = "TSIMPORT_TEST_SDK"

// runSDK runs a script of another language against a server of its own, whose access key is none of the built-in ones.
func runSDK(t *testing.T, dir, program string, args ...string) (printed string) {
	t.Helper()
	t.Setenv("TABLESTORE_ACCESS_KEY_SECRET", "a-secret-of-the-test")
	s := startServe(t, "--quiet", "--instance", "sdk-test", "--access-key-id", "SDK.test-1")
	if s.AccessKeySecret != "(from-environment)" {
		t.Errorf("the ready line shows the secret %q", s.AccessKeySecret)
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = slices.Concat(os.Environ(), []string{
		"TABLESTORE_ENDPOINT=" + s.URL, "TABLESTORE_INSTANCE=" + s.Instance, "TABLESTORE_ACCESS_KEY_ID=" + s.AccessKeyID,
	})
	killer := time.AfterFunc(sdkTimeout, func() {
		if cmd.Process != nil {
			cmd.Process.Kill()
		}
	})
	defer killer.Stop()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s %q: %v\n%s", program, args, err, out)
	}
	return string(out)
}

// runSample runs the sample of the page on the local engine.
func runSample(t *testing.T, dir, program string, args ...string) {
	t.Helper()
	if out := runSDK(t, dir, program, args...); !strings.HasSuffix(out, "tea\n") {
		t.Errorf("%s %q prints %q", program, args, out)
	}
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

func TestTheNodeSDKTakesTheServerForTheService(t *testing.T) {
	if os.Getenv(required) != "node" {
		if _, err := os.Stat("node/node_modules/tablestore"); err != nil {
			t.Skip("the SDK is not installed; make node installs it and runs this")
		}
		if _, err := exec.LookPath("node"); err != nil {
			t.Skip("there is no node on this machine; make node runs this")
		}
	}
	runSDK(t, "node", "node", "--test", "sdk.test.js")
	runSample(t, "node", "node", "orders.js")
}

func TestThePythonSDKTakesTheServerForTheService(t *testing.T) {
	python, err := filepath.Abs("python/venv/bin/python")
	must(t, err)
	if _, err := os.Stat(python); err != nil && os.Getenv(required) != "python" {
		t.Skip("the SDK is not installed; make python installs it and runs this")
	}
	runSDK(t, "python", python, "sdk_check.py")
	runSample(t, "python", python, "orders.py")
}

func TestTheJavaSDKTakesTheServerForTheService(t *testing.T) {
	if _, err := os.Stat("java/target/classes/SdkCheck.class"); err != nil && os.Getenv(required) != "java" {
		t.Skip("the SDK is not installed; make java installs it and runs this")
	}
	runSDK(t, "java", "java", "-cp", "target/classes:target/lib/*", "SdkCheck")
	runSample(t, "java", "java", "-cp", "target/classes:target/lib/*", "Orders")
}
