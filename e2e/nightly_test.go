//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// cronJob is what examples/nightly/cronjob.yaml says, and no more: another key fails the test.
type cronJob struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Spec       struct {
		Schedule                string
		ConcurrencyPolicy       string `yaml:"concurrencyPolicy"`
		StartingDeadlineSeconds int    `yaml:"startingDeadlineSeconds"`
		JobTemplate             struct {
			Spec struct {
				BackoffLimit     int `yaml:"backoffLimit"`
				PodFailurePolicy struct {
					Rules []struct {
						Action          string
						OnPodConditions []struct{ Type, Status string } `yaml:"onPodConditions"`
						OnExitCodes     *struct {
							ContainerName string `yaml:"containerName"`
							Operator      string
							Values        []int
						} `yaml:"onExitCodes"`
					}
				} `yaml:"podFailurePolicy"`
				Template struct {
					Spec struct {
						RestartPolicy                 string         `yaml:"restartPolicy"`
						TerminationGracePeriodSeconds int            `yaml:"terminationGracePeriodSeconds"`
						SecurityContext               map[string]any `yaml:"securityContext"`
						Containers                    []struct {
							Name, Image     string
							WorkingDir      string `yaml:"workingDir"`
							Args            []string
							SecurityContext map[string]any   `yaml:"securityContext"`
							EnvFrom         []map[string]any `yaml:"envFrom"`
							VolumeMounts    []map[string]any `yaml:"volumeMounts"`
						}
						Volumes []map[string]any
					}
				}
			}
		} `yaml:"jobTemplate"`
	}
}

// notTriedAgain are the exit codes with which another attempt does not help (docs/errors.md).
var notTriedAgain = []int{2, 3, 4, 5, 6, 7}

func nightlyRecipe(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../examples/nightly", name))
	must(t, err)
	return string(text)
}

func nightlyCronJob(t *testing.T) (c cronJob) {
	t.Helper()
	decoder := yaml.NewDecoder(bytes.NewReader([]byte(nightlyRecipe(t, "cronjob.yaml"))))
	decoder.KnownFields(true)
	must(t, decoder.Decode(&c))
	return c
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
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skipf("sh is needed: %v", err)
	}
	cron := regexp.MustCompile(`(?m)^30 1 \* \* \* tsimport (.*)$`).FindStringSubmatch(nightlyRecipe(t, "crontab"))
	if cron == nil {
		t.Fatal("crontab has no line for 01:30 of the user tsimport")
	}
	pod := nightlyCronJob(t).Spec.JobTemplate.Spec.Template.Spec.Containers[0]
	for name, line := range map[string]string{
		"crontab":          cron[1],
		"tsimport.service": "cd " + serviceSetting(t, "WorkingDirectory") + " && " + serviceSetting(t, "ExecStart"),
		"cronjob.yaml":     "cd " + pod.WorkingDir + " && tsimport " + strings.Join(pod.Args, " "),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			etc, data := t.TempDir(), t.TempDir()
			must(t, os.WriteFile(filepath.Join(etc, "job.yaml"), []byte(nightlyRecipe(t, "job.yaml")), 0o600))
			must(t, os.WriteFile(filepath.Join(data, "environment"), []byte("LANG=C\n"), 0o600))
			must(t, os.Mkdir(filepath.Join(data, "in"), 0o755))
			must(t, os.WriteFile(filepath.Join(data, "in", "orders-1.csv"), []byte("CardID,DeviceID,OrderNumber,Item\n1,2,3,tea\n"), 0o600))
			must(t, os.WriteFile(filepath.Join(data, "in", "items-1.csv"), []byte("id,item\n1,tea\n2,coffee\n"), 0o600))
			here := strings.NewReplacer("/usr/bin/tsimport", "tsimport", "/etc/tsimport", etc, "/var/lib/tsimport", data, "cd /data", "cd "+data).Replace(line)
			for _, want := range []int64{3, 0} {
				must(t, os.RemoveAll(filepath.Join(data, "last")))
				cmd := exec.Command("sh", "-c", here+" --json > "+filepath.Join(data, "last"))
				cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "TABLESTORE_") }),
					"PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v\n%s", here, err, out)
				}
				text, err := os.ReadFile(filepath.Join(data, "last"))
				must(t, err)
				if !strings.Contains(string(text), fmt.Sprintf(`"written": %d,`, want)) {
					t.Errorf("%s: want %d written:\n%s", here, want, text)
				}
			}
		})
	}
}

func TestTheNightlyRecipesTryAgainByExitCode(t *testing.T) {
	t.Parallel()
	var service []int
	for _, f := range strings.Fields(serviceSetting(t, "RestartPreventExitStatus")) {
		code, err := strconv.Atoi(f)
		must(t, err)
		service = append(service, code)
	}
	if !slices.Equal(service, notTriedAgain) {
		t.Errorf("the service does not try again with %v, want %v", service, notTriedAgain)
	}
	c := nightlyCronJob(t)
	spec := c.Spec.JobTemplate.Spec
	if c.APIVersion != "batch/v1" || c.Kind != "CronJob" || c.Spec.ConcurrencyPolicy != "Forbid" || spec.Template.Spec.RestartPolicy != "Never" {
		t.Errorf("%s %s, %s, %s: want batch/v1 CronJob, Forbid, and Never, which a podFailurePolicy needs",
			c.APIVersion, c.Kind, c.Spec.ConcurrencyPolicy, spec.Template.Spec.RestartPolicy)
	}
	failed := 0
	for _, r := range spec.PodFailurePolicy.Rules {
		if r.OnExitCodes == nil {
			continue
		}
		failed++
		if r.Action != "FailJob" || r.OnExitCodes.Operator != "In" || r.OnExitCodes.ContainerName != spec.Template.Spec.Containers[0].Name ||
			!slices.Equal(r.OnExitCodes.Values, notTriedAgain) {
			t.Errorf("the rule for exit codes is %s of %+v, want FailJob of %v", r.Action, *r.OnExitCodes, notTriedAgain)
		}
	}
	if failed != 1 {
		t.Errorf("%d rules for exit codes, want 1", failed)
	}
}

// TestSystemdTakesTheNightlyUnits has systemd read the units, with the binary of the test in place of the installed one.
func TestSystemdTakesTheNightlyUnits(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skipf("systemd-analyze is needed: %v", err)
	}
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
