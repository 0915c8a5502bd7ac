package k8s

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// decode reads a manifest as the API server does that is asked for strict validation: unknown and repeated fields are errors.
func decode(text []byte) (runtime.Object, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{batchv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	object, _, err := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer().Decode(text, nil, nil)
	return object, err
}

func nightly(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "nightly", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func cronJob(t *testing.T) *batchv1.CronJob {
	t.Helper()
	object, err := decode(nightly(t, "cronjob.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c, ok := object.(*batchv1.CronJob)
	if !ok {
		t.Fatalf("cronjob.yaml is a %T", object)
	}
	return c
}

func TestCronJobIsValid(t *testing.T) {
	c := cronJob(t)
	if _, err := cron.ParseStandard(c.Spec.Schedule); err != nil {
		t.Errorf("schedule: %v", err)
	}
	if !slices.Contains([]batchv1.ConcurrencyPolicy{batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent}, c.Spec.ConcurrencyPolicy) {
		t.Errorf("concurrencyPolicy %q is none of the API's", c.Spec.ConcurrencyPolicy)
	}
	// The name of a job is that of the CronJob plus 11 characters.
	if why := validation.IsDNS1123Subdomain(c.Name); len(why) > 0 || len(c.Name) > validation.DNS1123LabelMaxLength-11 {
		t.Errorf("the name %q: %v", c.Name, why)
	}
	checkPod(t, &c.Spec.JobTemplate.Spec.Template.Spec)
	checkFailures(t, &c.Spec.JobTemplate.Spec)
}

// checkPod checks what the API server refuses although the types allow it.
func checkPod(t *testing.T, pod *corev1.PodSpec) {
	t.Helper()
	volumes := map[string]bool{}
	for _, v := range pod.Volumes {
		if why := validation.IsDNS1123Label(v.Name); len(why) > 0 || volumes[v.Name] {
			t.Errorf("volume %q: %v, or there are two", v.Name, why)
		}
		volumes[v.Name] = true
	}
	for _, c := range pod.Containers {
		if why := validation.IsDNS1123Label(c.Name); len(why) > 0 || c.Image == "" {
			t.Errorf("container %q with image %q: %v", c.Name, c.Image, why)
		}
		paths := map[string]bool{}
		for _, m := range c.VolumeMounts {
			if !volumes[m.Name] || paths[m.MountPath] || !filepath.IsAbs(m.MountPath) {
				t.Errorf("container %s mounts %q at %q: there is no such volume, or the path is not one of its own", c.Name, m.Name, m.MountPath)
			}
			paths[m.MountPath] = true
		}
		for _, e := range c.EnvFrom {
			if (e.SecretRef == nil) == (e.ConfigMapRef == nil) {
				t.Errorf("container %s: envFrom wants one of secretRef and configMapRef", c.Name)
			}
		}
	}
	if err := restricted(pod); err != nil {
		t.Error(err)
	}
}

// restricted asks the evaluator of Kubernetes whether a pod passes the level "restricted" of the Pod Security Standards.
func restricted(pod *corev1.PodSpec) error {
	e, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return err
	}
	latest := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for _, r := range e.EvaluatePod(latest, &metav1.ObjectMeta{}, pod) {
		if !r.Allowed {
			err = errors.Join(err, fmt.Errorf("%s: %s", r.ForbiddenReason, r.ForbiddenDetail))
		}
	}
	return err
}

// checkFailures checks the rules of a job for pods that fail, by what the API server asks of them.
func checkFailures(t *testing.T, job *batchv1.JobSpec) {
	t.Helper()
	if job.Template.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("restartPolicy %q: a podFailurePolicy wants Never", job.Template.Spec.RestartPolicy)
	}
	if job.PodFailurePolicy == nil {
		t.Fatal("there is no podFailurePolicy")
	}
	actions := []batchv1.PodFailurePolicyAction{batchv1.PodFailurePolicyActionIgnore, batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyActionFailIndex, batchv1.PodFailurePolicyActionCount}
	for i, r := range job.PodFailurePolicy.Rules {
		if !slices.Contains(actions, r.Action) || (r.OnExitCodes == nil) == (len(r.OnPodConditions) == 0) {
			t.Errorf("rule %d: action %q, and wants one of onExitCodes and onPodConditions", i, r.Action)
		}
		for _, p := range r.OnPodConditions {
			if p.Type == "" || !slices.Contains([]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}, p.Status) {
				t.Errorf("rule %d: condition %q is %q", i, p.Type, p.Status)
			}
		}
		e := r.OnExitCodes
		if e == nil {
			continue
		}
		if e.Operator != batchv1.PodFailurePolicyOnExitCodesOpIn && e.Operator != batchv1.PodFailurePolicyOnExitCodesOpNotIn {
			t.Errorf("rule %d: operator %q", i, e.Operator)
		}
		if !slices.IsSorted(e.Values) || len(slices.Compact(slices.Clone(e.Values))) != len(e.Values) || e.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn && slices.Contains(e.Values, 0) {
			t.Errorf("rule %d: exit codes %v: want them in order, each once, and not 0", i, e.Values)
		}
		if e.ContainerName != nil && !slices.ContainsFunc(job.Template.Spec.Containers, func(c corev1.Container) bool { return c.Name == *e.ContainerName }) {
			t.Errorf("rule %d: there is no container %q", i, *e.ContainerName)
		}
	}
}

// YAML manifests with misspelled or misplaced fields would otherwise pass silently.
func TestMistakesInTheCronJobAreFound(t *testing.T) {
	text := nightly(t, "cronjob.yaml")
	for from, to := range map[string]string{
		"concurrencyPolicy:":      "concurencyPolicy:",
		"backoffLimit: 5":         `backoffLimit: "5"`,
		"values: [2":              "codes: [2",
		"restartPolicy: Never":    "restartPolicy: Never\n          restartPolicy: Never",
		"apiVersion: batch/v1":    "apiVersion: batch/v1beta9",
		"runAsNonRoot: true":      "runAsNonRoot: yes please",
		"startingDeadlineSeconds": "activeDeadlineSeconds",
	} {
		wrong := bytes.Replace(text, []byte(from), []byte(to), 1)
		if bytes.Equal(wrong, text) {
			t.Fatalf("%q is not in the manifest", from)
		}
		if _, err := decode(wrong); err == nil {
			t.Errorf("%s in place of %s is taken", to, from)
		}
	}
}

// action is what the controller of Jobs does with a pod whose container ended with a code.
func action(policy *batchv1.PodFailurePolicy, container string, code int32) batchv1.PodFailurePolicyAction {
	for _, rule := range policy.Rules {
		e := rule.OnExitCodes
		if e == nil || code == 0 || e.ContainerName != nil && *e.ContainerName != container {
			continue
		}
		if slices.Contains(e.Values, code) == (e.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn) {
			return rule.Action
		}
	}
	return batchv1.PodFailurePolicyActionCount
}

// The tests of e2e run these nights; a process must end with their exit codes.
func TestNightIsRetriedOnlyWhereItHelps(t *testing.T) {
	text, err := os.ReadFile("../../e2e/testdata/nights.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var nights []struct {
		Night string
		Code  int32
	}
	if err := yaml.Unmarshal(text, &nights); err != nil || len(nights) < 5 {
		t.Fatalf("%d nights: %v", len(nights), err)
	}
	job := &cronJob(t).Spec.JobTemplate.Spec
	var ends []int32
	for code := range int32(256) {
		if action(job.PodFailurePolicy, job.Template.Spec.Containers[0].Name, code) == batchv1.PodFailurePolicyActionFailJob {
			ends = append(ends, code)
		}
	}
	for _, n := range nights {
		if again := !slices.Contains(ends, n.Code); again != (n.Code <= 1) {
			t.Errorf("a night that %s, exit code %d: tried again: %v", n.Night, n.Code, again)
		}
	}
	if *job.BackoffLimit < 1 || job.TTLSecondsAfterFinished == nil {
		t.Error("the job is not tried again, or never removed: its alert would stand after good nights")
	}
	codes := strings.Trim(fmt.Sprint(ends), "[]")
	if !strings.Contains(string(nightly(t, "tsimport.service")), "\nRestartPreventExitStatus="+codes+"\n") {
		t.Errorf("tsimport.service does not end with the codes of the CronJob, %s", codes)
	}
}

func TestTheCrontabHasTheScheduleOfTheCronJob(t *testing.T) {
	line := regexp.MustCompile(`(?m)^((?:[\d*]+ ){5})(\S+) +\S.*$`)
	lines := line.FindAllStringSubmatch(string(nightly(t, "crontab")), -1)
	if len(lines) != 1 {
		t.Fatalf("the crontab has %d lines with a schedule, a user and a command; want 1", len(lines))
	}
	schedule := strings.TrimSpace(lines[0][1])
	if _, err := cron.ParseStandard(schedule); err != nil {
		t.Error(err)
	}
	if of := cronJob(t).Spec.Schedule; of != schedule {
		t.Errorf("the crontab runs at %q, the CronJob at %q", schedule, of)
	}
}
