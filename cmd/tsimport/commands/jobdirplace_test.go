package commands

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/tsimport/engine/enginetest"
	"example.com/tsimport/internal/conformance"
)

// TestWorkersFindTheServiceOfThePlan plans in an environment that names the service, or with flags that do, and works where the environment
// names none, or another one.
func TestWorkersFindTheServiceOfThePlan(t *testing.T) {
	service := enginetest.Start(t)
	places := map[string]string{endpointEnv: service.URL, instanceEnv: service.Instance}
	for name, c := range map[string]struct {
		planned, worked map[string]string
		flags           []string
	}{
		"an environment, and none":         {planned: places},
		"flags, and none":                  {flags: []string{"--endpoint", service.URL, "--instance", service.Instance}},
		"an environment, and another one":  {planned: places, worked: map[string]string{endpointEnv: "http://127.0.0.1:1", instanceEnv: "other"}},
		"variables of flags, and none":     {planned: map[string]string{"TSIMPORT_ENDPOINT": service.URL, "TSIMPORT_INSTANCE": service.Instance}},
		"an environment, and half of one ": {planned: places, worked: map[string]string{endpointEnv: service.URL}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			t.Setenv("TABLESTORE_ACCESS_KEY_ID", service.AccessKeyID)
			t.Setenv("TABLESTORE_ACCESS_KEY_SECRET", service.AccessKeySecret)
			t.Setenv("OSS_REGION", "cn-hangzhou")
			t.Setenv("AWS_REGION", "eu-central-1")
			t.Setenv("AWS_SECRET_ACCESS_KEY", "not-for-manifests")
			environment := func(of map[string]string) {
				for name := range maps.Keys(map[string]int{endpointEnv: 0, instanceEnv: 0, "TSIMPORT_ENDPOINT": 0, "TSIMPORT_INSTANCE": 0}) {
					t.Setenv(name, of[name])
				}
			}
			put(t, "in.csv", "id,a\n1,x\n2,y\n")
			call := func(want int, args ...string) string {
				t.Helper()
				var out, said bytes.Buffer
				if code := RunWith(nil, append([]string{"tsimport"}, args...), &out, &said); code != want {
					t.Fatalf("%q: exit code %d\n%s%s", args, code, out.String(), said.String())
				}
				return out.String() + said.String()
			}
			environment(c.planned)
			job := filepath.Join(dir, "job")
			plan := append([]string{"load", "in.csv", "--table", strings.NewReplacer(" ", "_", ",", "").Replace(name), "--create", "--pk", "id", "--job-dir", job}, c.flags...)
			call(0, plan...)
			text := call(0, "manifests", job, "--image", "i", "--volume", "shared:"+dir)
			for _, want := range []string{"name: TABLESTORE_ENDPOINT", "value: " + service.URL, "value: " + service.Instance, "value: cn-hangzhou", "name: AWS_REGION"} {
				conformance.Contains(t, text, want, "the manifests")
			}
			if strings.Contains(text, service.AccessKeySecret) || strings.Contains(text, "not-for-manifests") {
				t.Errorf("the manifests hold a secret:\n%s", text)
			}
			environment(c.worked)
			text = call(0, "work", "--job-dir", job)
			if !strings.Contains(text, "2 written") || !strings.Contains(text, service.URL) {
				t.Errorf("the worker says\n%s", text)
			}
			warning := "warning: requests go to " + service.URL + ", as the plan of " + job + " says; " + endpointEnv + " of this machine is " + c.worked[endpointEnv]
			if other := c.worked[endpointEnv]; strings.Contains(text, warning+"\n") != (other != "" && other != service.URL) {
				t.Errorf("the worker, whose environment names %q, says\n%s", other, text)
			}
			if _, err := os.Stat(defaultStore); err == nil {
				t.Error("the worker has made an embedded store")
			}
		})
	}
}

func TestAWorkerWithoutAServiceDoesNotLoadIntoAnEmbeddedStore(t *testing.T) {
	service := enginetest.Start(t)
	t.Chdir(t.TempDir())
	for name, value := range map[string]string{
		endpointEnv: service.URL, instanceEnv: service.Instance, "TABLESTORE_ACCESS_KEY_ID": service.AccessKeyID, "TABLESTORE_ACCESS_KEY_SECRET": service.AccessKeySecret,
	} {
		t.Setenv(name, value)
	}
	put(t, "in.csv", "id,a\n1,x\n")
	var out, said bytes.Buffer
	if code := RunWith(nil, []string{"tsimport", "load", "in.csv", "--table", "t", "--create", "--pk", "id", "--job-dir", "job"}, &out, &said); code != 0 {
		t.Fatalf("exit code %d\n%s", code, said.String())
	}
	body, err := os.ReadFile("job/plan.json")
	must(t, err)
	without := strings.Replace(string(body), `"endpoint": `, `"was": `, 1) // as another process has made it
	put(t, "job/plan.json", without)
	t.Setenv(endpointEnv, "")
	if code := RunWith(nil, []string{"tsimport", "work", "--job-dir", "job"}, &out, &said); code != 2 || !strings.Contains(said.String(), "neither its plan nor this machine names an endpoint") {
		t.Errorf("exit code %d\n%s", code, said.String())
	}
	if _, err := os.Stat(defaultStore); err == nil {
		t.Error("there is an embedded store")
	}
}
