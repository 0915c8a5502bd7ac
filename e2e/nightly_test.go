//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// cronJob is what the test takes of examples/nightly/cronjob.yaml; that it is one of Kubernetes's, and tries again by exit code, is checked by the
// types of its API (k8s).
type cronJob struct {
	Spec struct {
		JobTemplate struct {
			Spec struct{ Template podTemplate }
		} `yaml:"jobTemplate"`
	}
}

func nightlyRecipe(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../examples/nightly", name))
	must(t, err)
	return string(text)
}

// serviceSetting is the value of a setting that the service has once.
func serviceSetting(t *testing.T, name string) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^`+name+`=(.*)$`).FindAllStringSubmatch(nightlyRecipe(t, "tsimport.service"), -1)
	if len(found) != 1 {
		t.Fatalf("tsimport.service has %s %d times, want once", name, len(found))
	}
	return found[0][1]
}

// TestTheCommandsOfTheNightlyRecipesLoadOnlyWhatIsNew takes the command line out of each recipe, and runs it twice with its folders
// replaced by those of the test and an embedded store in place of the service.
func TestTheCommandsOfTheNightlyRecipesLoadOnlyWhatIsNew(t *testing.T) {
	t.Parallel()
	needs(t, "bash")
	cron := regexp.MustCompile(`(?m)^30 1 \* \* \* tsimport (.*)$`).FindStringSubmatch(nightlyRecipe(t, "crontab"))
	if cron == nil {
		t.Fatal("crontab has no line for 01:30 of the user tsimport")
	}
	var c cronJob
	must(t, yaml.Unmarshal([]byte(nightlyRecipe(t, "cronjob.yaml")), &c))
	pod := c.Spec.JobTemplate.Spec.Template.Spec.Containers[0]
	for name, line := range map[string]string{
		"crontab":          cron[1],
		"tsimport.service": "cd " + serviceSetting(t, "WorkingDirectory") + " && " + serviceSetting(t, "ExecStart"),
		"cronjob.yaml":     "cd " + pod.WorkingDir + " && tsimport " + strings.Join(pod.Args, " "),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			etc, data := newPlace(t), newPlace(t)
			etc.write("job.yaml", nightlyRecipe(t, "job.yaml"))
			data.write("environment", "LANG=C\n")
			data.write("in/orders-1.csv", "CardID,DeviceID,OrderNumber,Item\n1,2,3,tea\n")
			data.write("in/items-1.csv", "id,item\n1,tea\n2,coffee\n")
			here := strings.NewReplacer("/usr/bin/tsimport", "tsimport", "/etc/tsimport", etc.dir, "/var/lib/tsimport", data.dir, "cd /data", "cd "+data.dir).Replace(line)
			for _, want := range []int64{3, 0} {
				if r := data.bash(here + " --json > " + data.path("last")); r.wait() != 0 {
					t.Fatalf("%s: %v\n%s", here, r.ProcessState, &r.said)
				}
				text := data.read("last")
				if !strings.Contains(text, fmt.Sprintf(`"written": %d,`, want)) {
					t.Errorf("%s: want %d written:\n%s", here, want, text)
				}
			}
		})
	}
}

// TestTheNightlyRecipesTryAgainByExitCode: not with those with which another attempt does not help (docs/errors.md).
func TestTheNightlyRecipesTryAgainByExitCode(t *testing.T) {
	t.Parallel()
	if codes := serviceSetting(t, "RestartPreventExitStatus"); codes != "2 3 4 5 6 7" {
		t.Errorf("the service does not try again with %s", codes)
	}
	job := nightlyRecipe(t, "cronjob.yaml")
	for _, once := range []string{"concurrencyPolicy: Forbid\n", "action: FailJob\n", "onExitCodes:", "operator: In", "values: [2, 3, 4, 5, 6, 7]"} {
		if strings.Count(job, once) != 1 {
			t.Errorf("cronjob.yaml has %q %d times, want once", once, strings.Count(job, once))
		}
	}
}

// TestSystemdTakesTheNightlyUnits has systemd read the units, with the binary of the test in place of the installed one.
func TestSystemdTakesTheNightlyUnits(t *testing.T) {
	t.Parallel()
	needs(t, "systemd-analyze")
	dir := t.TempDir()
	units := []string{"verify", "--man=no"}
	for _, name := range []string{"tsimport.service", "tsimport.timer"} {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(strings.ReplaceAll(nightlyRecipe(t, name), "/usr/bin/tsimport", binary)), 0o600))
		units = append(units, path)
	}
	out, err := exec.Command("systemd-analyze", units...).CombinedOutput()
	if err != nil {
		t.Fatalf("systemd-analyze %q: %v\n%s", units, err, out)
	}
	if bytes.Contains(out, []byte(dir)) {
		t.Errorf("systemd-analyze says of the units:\n%s", out)
	}
}
