//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"example.com/tsimport/internal/conformance"
)

func nightlyRecipe(t testing.TB, name string) string {
	t.Helper()
	text := conformance.Try(os.ReadFile(filepath.Join("../examples/nightly", name))).Must(t)
	return string(text)
}

type night struct {
	Night       string
	Files       map[string]string
	Environment string
	Never       bool
	Code, Hours int
	Alerts      []string
}

// host is a machine whose root folder contains the folders of the recipes.
type host struct {
	t               *testing.T
	root, etc, data *place
}

func newHost(t *testing.T) *host {
	root := newPlace(t)
	at := func(name string) *place { return &place{t: t, dir: root.path(name)} }
	return &host{t, root, at("etc/tsimport"), at("var/private/tsimport")}
}

// here replaces the folders in a recipe with the host's, and the installed binary with the test's.
func (h *host) here(recipe string) string {
	for from, to := range map[string]string{
		"&& tsimport ": "&& " + binary + " ", "/etc/tsimport": h.etc.dir, "/var/lib/tsimport": h.data.dir,
	} {
		recipe = strings.ReplaceAll(recipe, from, to)
	}
	return recipe
}

// nights runs each kind of night on a host, after a good night there, and then checks the alerts.
func nights(t *testing.T, run, check func(h *host, n *night)) {
	text := conformance.Try(os.ReadFile("testdata/nights.yaml")).Must(t)
	var all []night
	must(t, yaml.Unmarshal(text, &all))
	for _, n := range all {
		t.Run(n.Night, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			quick := strings.Replace(nightlyRecipe(t, "job.yaml"), "max-errors: 0.1%", "max-errors: 50%, retry-for: 1s", 1)
			must(t, os.Chmod(h.etc.write("job.yaml", quick), 0o644))
			h.comes(run, &night{Files: map[string]string{
				"in/orders-1.csv": "CardID,DeviceID,OrderNumber,Item\n1,2,3,tea\n", "in/items-1.csv": "id,item\n1,tea\n2,coffee\n",
			}})
			if !n.Never {
				h.comes(run, &n)
			}
			check(h, &n)
		})
	}
}

func (h *host) comes(run func(h *host, n *night), n *night) {
	h.t.Helper()
	for name, text := range n.Files {
		must(h.t, os.Chmod(h.data.write(name, text), 0o644)) // systemd's dynamic user must read it
	}
	for _, p := range []*place{h.etc, h.data} {
		p.write("environment", n.Environment)
	}
	run(h, n)
}

// raises checks that exactly these alerts of a group of rules fire after a night, given these series since its end.
func (h *host) raises(group string, n *night, alerts []string, series map[string]float64) {
	h.t.Helper()
	needs(h.t, "promtool")
	var rules map[string][]map[string]any
	must(h.t, yaml.Unmarshal([]byte(nightlyRecipe(h.t, "alerts.yaml")), &rules))
	rules["groups"] = slices.DeleteFunc(rules["groups"], func(g map[string]any) bool { return g["name"] != group })
	type object = map[string]any
	input, raised := []object{}, []object{}
	for _, name := range slices.Sorted(maps.Keys(series)) {
		value := strconv.FormatFloat(series[name], 'f', -1, 64)
		input = append(input, object{"series": name, "values": value + "x" + strconv.Itoa(60*n.Hours)})
	}
	for _, name := range alerts {
		raised = append(raised, object{"labels": fmt.Sprintf("{alertname=%q}", name), "value": 1})
	}
	for name, content := range map[string]any{
		"rules.yaml": rules,
		"test.yaml": object{"rule_files": []string{"rules.yaml"}, "tests": []object{{
			"interval": "1m", "input_series": input,
			"promql_expr_test": []object{{
				"expr":      `group by (alertname) (ALERTS{alertstate="firing"})`,
				"eval_time": fmt.Sprintf("%dh", n.Hours), "exp_samples": raised,
			}},
		}}},
	} {
		text := conformance.Try(yaml.Marshal(content)).Must(h.t)
		h.etc.write(name, string(text))
	}
	if out, err := exec.Command("promtool", "test", "rules", h.etc.path("test.yaml")).CombinedOutput(); err != nil {
		h.t.Errorf("promtool: %v\n%s", err, out)
	}
}

// told checks the alerts that a night's metrics raise. The clock of promtool starts at 0, which means now.
func (h *host) told(n *night, metrics string) {
	h.t.Helper()
	series, now := map[string]float64{}, float64(time.Now().Unix())
	for line := range strings.Lines(metrics) {
		at := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") {
			continue
		}
		value := conformance.Try(strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)).Must(h.t)
		if strings.Contains(line, "_timestamp_seconds{") {
			value -= now
		}
		series[line[:at]] = value
	}
	h.raises("tsimport", n, n.Alerts, series)
}

// TestCronMailsErrorsOfNight runs the crontab's line as cron does, in a shell with four variables.
func TestCronMailsErrorsOfNight(t *testing.T) {
	t.Parallel()
	line := regexp.MustCompile(`(?m)^30 1 \* \* \* tsimport (.*)$`).FindStringSubmatch(nightlyRecipe(t, "crontab"))
	conformance.MustTrue(t, line != nil, "crontab has no line for 01:30 of the user tsimport")
	nights(t, func(h *host, n *night) {
		cmd := exec.Command("/bin/sh", "-c", h.here(line[1]))
		cmd.Dir = h.data.dir
		cmd.Env = []string{"HOME=" + cmd.Dir, "SHELL=/bin/sh", "PATH=/usr/bin:/bin", "LOGNAME=tsimport"}
		r := begin(h.t, cmd)
		code := r.wait()
		mail := r.said.String()
		last := mail[strings.LastIndexByte(strings.TrimSpace(mail), '\n')+1:]
		if code != n.Code || (mail == "") != (code == 0) || code != 0 && !strings.HasPrefix(last, "tsimport: job ") {
			h.t.Fatalf("exit code %d, want %d; cron mails:\n%s", code, n.Code, mail)
		}
	}, func(h *host, n *night) { h.told(n, h.data.read("tsimport.prom")) })
}

// TestSystemdStartsUnitAfterFailedNight needs its own systemd, whose timer starts the unit again after a failure.
func TestSystemdStartsUnitAfterFailedNight(t *testing.T) {
	t.Parallel()
	needs(t, "systemctl", "unshare")
	nights(t, (*host).systemd, func(h *host, n *night) {
		h.told(n, h.root.read("var/prometheus/node-exporter/tsimport.prom"))
	})
}

func (h *host) systemd(n *night) {
	h.t.Helper()
	const failed = "tsimport-failed.service"
	for name, text := range map[string]string{
		"tsimport.service": nightlyRecipe(h.t, "tsimport.service"), failed: nightlyRecipe(h.t, failed),
		"default.target": "[Unit]\nWants=tsimport.service\n",
		"tsimport.service.d/test.conf": "[Service]\nRestartSec=100ms\n" +
			"ExecStartPre=+/bin/sh -c 'echo attempt >> /var/lib/log'\n" +
			"ExecStopPost=+/bin/sh -c '[ $$SERVICE_RESULT != success ] || kill $$MANAGERPID'\n",
		failed + ".d/test.conf": "[Unit]\nSuccessAction=exit\nFailureAction=exit\n",
	} {
		h.root.write("etc/systemd/user/"+name, text)
	}
	for name, script := range map[string]string{
		"journalctl": "cat /var/lib/log", "mail": `(echo "$@"; cat) >> /var/lib/mail`,
	} {
		must(h.t, os.Chmod(h.root.write("usr/bin/"+name, "#!/bin/sh\n"+script+"\n"), 0o755))
	}
	must(h.t, os.MkdirAll(h.root.path("var/prometheus/node-exporter"), 0o755))
	must(h.t, os.Chmod(h.root.path("var/private"), 0o700))
	for _, name := range []string{"usr/bin/tsimport", "var/log"} { // left by the previous night
		os.Remove(h.root.path(name))
	}
	must(h.t, os.Link(binary, h.root.path("usr/bin/tsimport")))
	r := begin(h.t, exec.Command("bash", "testdata/systemd.sh", h.root.dir))
	if r.wait() == 77 {
		h.t.Skipf("namespaces are needed:\n%s", &r.said)
	}
	log, mails := "attempt\n", ""
	if n.Code == 1 {
		log = strings.Repeat(log, 5)
	}
	if n.Code != 0 {
		mails = fmt.Sprintf("-s tsimport: exit code %d root\n%s", n.Code, log)
	}
	mailed, _ := os.ReadFile(h.root.path("var/mail")) // a good night sends no mail
	if got := h.root.read("var/log"); got != log || string(mailed) != mails {
		h.t.Fatalf("log %q, want %q; mailed %q, want %q; %v:\n%s", got, log, mailed, mails, r.ProcessState, &r.said)
	}
}

// TestSystemdAcceptsNightlyUnits makes systemd verify the units, with the test's binary.
func TestSystemdAcceptsNightlyUnits(t *testing.T) {
	t.Parallel()
	needs(t, "systemd-analyze")
	dir := t.TempDir()
	units := []string{"verify", "--man=no"}
	for _, name := range []string{"tsimport.service", "tsimport-failed.service", "tsimport.timer"} {
		path := filepath.Join(dir, name)
		unit := strings.ReplaceAll(nightlyRecipe(t, name), "/usr/bin/tsimport ", binary+" ")
		must(t, os.WriteFile(path, []byte(unit), 0o600))
		units = append(units, path)
	}
	out, err := exec.Command("systemd-analyze", units...).CombinedOutput()
	conformance.MustEqual(t, err, nil, "systemd-analyze %q:\n%s", units, out)
	conformance.Equal(t, bytes.Contains(out, []byte(dir)), false, "systemd-analyze says of the units:\n%s", out)
}

// TestAlertReportsFailingPod runs the container of the CronJob. packaging/k8s tests the effect of its exit code.
func TestAlertReportsFailingPod(t *testing.T) {
	t.Parallel()
	var c struct {
		Spec struct {
			JobTemplate struct {
				Spec struct{ Template podTemplate }
			} `yaml:"jobTemplate"`
		}
	}
	must(t, yaml.Unmarshal([]byte(nightlyRecipe(t, "cronjob.yaml")), &c))
	pod := c.Spec.JobTemplate.Spec.Template.Spec.Containers[0]
	nights(t, func(h *host, n *night) {
		cmd := exec.Command(binary, strings.Fields(h.here(strings.Join(pod.Args, " ")))...)
		cmd.Dir = strings.Replace(pod.WorkingDir, "/data", h.data.dir, 1)
		cmd.Env = strings.Fields(n.Environment)
		if r := begin(h.t, cmd); r.wait() != n.Code {
			h.t.Fatalf("%v, want exit code %d:\n%s", r.ProcessState, n.Code, &r.said)
		}
	}, func(h *host, n *night) {
		const of = `{namespace="default",cronjob="tsimport"}`
		series := map[string]float64{"kube_cronjob_created" + of: -1e6, "kube_cronjob_status_last_successful_time" + of: 0}
		var alerts []string
		if n.Never {
			alerts = []string{"TsimportJobDidNotRun"}
		}
		if n.Code != 0 {
			alerts = []string{"TsimportJobFailed"}
			series["kube_cronjob_status_last_successful_time"+of] = -24 * 3600
			series[`kube_job_failed{namespace="default",job_name="tsimport-29931450",condition="true"}`] = 1
		}
		h.raises("tsimport-kubernetes", n, alerts, series)
	})
}

// TestAlertReportsMissingFirstNight checks the alerts if there are no metrics at all.
func TestAlertReportsMissingFirstNight(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.told(&night{Hours: 1, Alerts: []string{"TsimportDidNotRun"}}, "")
	out, err := exec.Command("promtool", "check", "rules", "../examples/nightly/alerts.yaml").CombinedOutput()
	conformance.Equal(t, err, nil, "promtool:\n%s", out)
}
