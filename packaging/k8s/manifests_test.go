package k8s

import (
	"bytes"
	"cmp"
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
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func must[T any](of T, err error) T {
	if err != nil {
		panic(err)
	}
	return of
}

func check(t *testing.T, holds bool, format string, args ...any) {
	t.Helper()
	if !holds {
		t.Errorf(format, args...)
	}
}

// decode decodes a manifest like the API server's strict validation: unknown and repeated fields are errors.
func decode(text []byte) (runtime.Object, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{batchv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	object, _, err := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer().Decode(text, nil,
		nil)
	return object, err
}

func nightly(t *testing.T, name string) []byte {
	return must(os.ReadFile(filepath.Join("..", "..", "examples", "nightly", name)))
}

func cronJob(t *testing.T) *batchv1.CronJob {
	t.Helper()
	object := must(decode(nightly(t, "cronjob.yaml")))
	c, ok := object.(*batchv1.CronJob)
	if !ok {
		t.Fatalf("cronjob.yaml is a %T", object)
	}
	return c
}

func TestCronJobIsValid(t *testing.T) {
	c := cronJob(t)
	_, err := cron.ParseStandard(c.Spec.Schedule)
	check(t, err == nil, "schedule: %v", err)
	check(t, slices.Contains([]batchv1.ConcurrencyPolicy{batchv1.AllowConcurrent, batchv1.ForbidConcurrent,
		batchv1.ReplaceConcurrent}, c.Spec.ConcurrencyPolicy),
		"concurrencyPolicy %q is none of the API's", c.Spec.ConcurrencyPolicy)
	// The name of a job is the CronJob's plus 11 characters.
	why := validation.IsDNS1123Subdomain(c.Name)
	check(t, len(why) == 0 && len(c.Name) <= validation.DNS1123LabelMaxLength-11, "the name %q: %v", c.Name, why)
	checkPod(t, &c.Spec.JobTemplate.Spec.Template.Spec)
	checkFailures(t, &c.Spec.JobTemplate.Spec)
}

// checkPod checks rules that the API server enforces in addition to the types.
func checkPod(t *testing.T, pod *corev1.PodSpec) {
	t.Helper()
	volumes := map[string]bool{}
	for _, v := range pod.Volumes {
		why := validation.IsDNS1123Label(v.Name)
		check(t, len(why) == 0 && !volumes[v.Name], "volume %q: %v, or there are two", v.Name, why)
		volumes[v.Name] = true
	}
	for _, c := range pod.Containers {
		why := validation.IsDNS1123Label(c.Name)
		check(t, len(why) == 0 && c.Image != "", "container %q with image %q: %v", c.Name, c.Image, why)
		paths := map[string]bool{}
		for _, m := range c.VolumeMounts {
			check(t, volumes[m.Name] && !paths[m.MountPath] && filepath.IsAbs(m.MountPath),
				"container %s: no volume %q, or the path %q is mounted twice", c.Name, m.Name, m.MountPath)
			paths[m.MountPath] = true
		}
		for _, e := range c.EnvFrom {
			check(t, (e.SecretRef == nil) != (e.ConfigMapRef == nil), "%s: envFrom wants secretRef or configMapRef", c.Name)
		}
	}
	err := restricted(pod)
	check(t, err == nil, "%v", err)
}

// restricted returns an error unless a pod meets the level "restricted" of the Pod Security Standards.
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

// checkFailures checks a job's rules for failing pods as the API server does.
func checkFailures(t *testing.T, job *batchv1.JobSpec) {
	t.Helper()
	check(t, job.Template.Spec.RestartPolicy == corev1.RestartPolicyNever,
		"restartPolicy %q: a podFailurePolicy wants Never", job.Template.Spec.RestartPolicy)
	if job.PodFailurePolicy == nil {
		t.Fatal("there is no podFailurePolicy")
	}
	actions := []batchv1.PodFailurePolicyAction{batchv1.PodFailurePolicyActionIgnore,
		batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyActionFailIndex, batchv1.PodFailurePolicyActionCount}
	for i, r := range job.PodFailurePolicy.Rules {
		check(t, slices.Contains(actions, r.Action) && (r.OnExitCodes == nil) != (len(r.OnPodConditions) == 0),
			"rule %d: action %q, and wants one of onExitCodes and onPodConditions", i, r.Action)
		for _, p := range r.OnPodConditions {
			if p.Type == "" || !slices.Contains([]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse,
				corev1.ConditionUnknown}, p.Status) {
				t.Errorf("rule %d: condition %q is %q", i, p.Type, p.Status)
			}
		}
		e := r.OnExitCodes
		if e == nil {
			continue
		}
		check(t, e.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn ||
			e.Operator == batchv1.PodFailurePolicyOnExitCodesOpNotIn, "rule %d: operator %q", i, e.Operator)
		if !slices.IsSorted(e.Values) || len(slices.Compact(slices.Clone(e.Values))) != len(e.Values) ||
			e.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn && slices.Contains(e.Values, 0) {
			t.Errorf("rule %d: exit codes %v: want them in order, each once, and not 0", i, e.Values)
		}
		if e.ContainerName != nil && !slices.ContainsFunc(job.Template.Spec.Containers,
			func(c corev1.Container) bool { return c.Name == *e.ContainerName }) {
			t.Errorf("rule %d: there is no container %q", i, *e.ContainerName)
		}
	}
}

// If decode ignored misspelled or misplaced fields, the other tests would pass for invalid manifests.
func TestCronJobMistakesAreDetected(t *testing.T) {
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
		_, err := decode(wrong)
		check(t, err != nil, "%s in place of %s is taken", to, from)
	}
}

// action returns what the Job controller does with a pod whose container ended with this exit code.
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

// The tests in e2e run the same nights, and check that processes end with these exit codes.
func TestJobIsRetriedOnlyIfThatCanHelp(t *testing.T) {
	text := must(os.ReadFile("../../e2e/testdata/nights.yaml"))
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
		again := !slices.Contains(ends, n.Code)
		check(t, again == (n.Code <= 1), "a night that %s, exit code %d: tried again: %v", n.Night, n.Code, again)
	}
	check(t, *job.BackoffLimit >= 1 && job.TTLSecondsAfterFinished != nil,
		"the job is not tried again, or never removed: its alert would stand after good nights")
	codes := strings.Trim(fmt.Sprint(ends), "[]")
	check(t, strings.Contains(string(nightly(t, "tsimport.service")), "\nRestartPreventExitStatus="+codes+"\n"),
		"tsimport.service does not end with the codes of the CronJob, %s", codes)
}

func TestCrontabAndCronJobHaveSameSchedule(t *testing.T) {
	line := regexp.MustCompile(`(?m)^((?:[\d*]+ ){5})(\S+) +\S.*$`)
	lines := line.FindAllStringSubmatch(string(nightly(t, "crontab")), -1)
	if len(lines) != 1 {
		t.Fatalf("the crontab has %d lines with a schedule, a user and a command; want 1", len(lines))
	}
	schedule := strings.TrimSpace(lines[0][1])
	_, err := cron.ParseStandard(schedule)
	check(t, err == nil, "%v", err)
	of := cronJob(t).Spec.Schedule
	check(t, of == schedule, "the crontab runs at %q, the CronJob at %q", schedule, of)
}

func read(t *testing.T, path ...string) []byte {
	return must(os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...)))
}

// indexedJob decodes a Job and checks the API server's rules for one with a limit of attempts per index.
func indexedJob(t *testing.T, text []byte) *batchv1.Job {
	t.Helper()
	object, err := decode(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	j, ok := object.(*batchv1.Job)
	if !ok {
		t.Fatalf("a %T", object)
	}
	checkPod(t, &j.Spec.Template.Spec)
	checkFailures(t, &j.Spec)
	s := &j.Spec
	if s.CompletionMode == nil || *s.CompletionMode != batchv1.IndexedCompletion || s.Completions == nil ||
		s.Parallelism == nil || s.BackoffLimitPerIndex == nil {
		t.Fatalf("%s is not an Indexed Job with a limit for each index", j.Name)
	}
	check(t, *s.Completions >= 1 && *s.Completions <= 10_000 && *s.Parallelism == *s.Completions &&
		s.BackoffLimit == nil && s.Suspend == nil, "%s: %d completions, %d at a time", j.Name, *s.Completions, *s.Parallelism)
	check(t, s.PodReplacementPolicy != nil && *s.PodReplacementPolicy == batchv1.Failed,
		"%s: a pod may be replaced while it still writes", j.Name)
	// A pod's name is the Job's plus the index and six more characters.
	why := validation.IsDNS1123Label(j.Name + "-99999-abcde")
	check(t, len(why) == 0, "the name %q: %v", j.Name, why)
	return j
}

// manifests returns output of tsimport manifests that the tests of jobs/scaleout/kubernetes compare.
func manifests(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "jobs", "scaleout", "kubernetes", "testdata", "*.yaml"))
	if err != nil || len(files) < 2 {
		t.Fatalf("%d files of manifests: %v", len(files), err)
	}
	all := map[string][]byte{}
	for _, file := range files {
		all[file] = read(t, "jobs", "scaleout", "kubernetes", "testdata", filepath.Base(file))
	}
	return all
}

func TestManyMachinesJobIsValid(t *testing.T) {
	for file, text := range manifests(t) {
		j := indexedJob(t, text)
		r := j.Spec.Template.Spec.Containers[0].Resources.Requests
		check(t, !r.Cpu().IsZero() && !r.Memory().IsZero() && !r.StorageEphemeral().IsZero(), "%s requests %v", file, r)
		one, all := batchv1.PodFailurePolicyActionFailIndex, batchv1.PodFailurePolicyActionFailJob
		want := map[int32]batchv1.PodFailurePolicyAction{2: one, 3: one, 4: all, 5: all, 6: one, 7: one}
		for code := range int32(256) {
			is := action(j.Spec.PodFailurePolicy, "tsimport", code)
			check(t, is == cmp.Or(want[code], batchv1.PodFailurePolicyActionCount), "%s: after exit code %d: %s", file, code, is)
		}
	}
}

// checkPatched checks that the example's patch was applied to a manifest and changed nothing else.
func checkPatched(t *testing.T, text []byte, was *batchv1.Job) {
	t.Helper()
	j := indexedJob(t, text)
	pod, container := &j.Spec.Template.Spec, &j.Spec.Template.Spec.Containers[0]
	check(t, j.Labels["kueue.x-k8s.io/queue-name"] == "loads" && len(j.Labels) == len(was.Labels)+1 &&
		j.Spec.TTLSecondsAfterFinished != nil && pod.ServiceAccountName == "loader" && len(pod.ImagePullSecrets) == 1 &&
		len(pod.Tolerations) == 1 && pod.NodeSelector["node.kubernetes.io/instance-type"] != "",
		"the patch is not applied:\n%s", text)
	old := &was.Spec.Template.Spec.Containers[0]
	check(t, len(pod.Containers) == 1 && container.Resources.Requests.Cpu().Value() == 3 &&
		container.Resources.Requests.Memory().Equal(*old.Resources.Requests.Memory()) &&
		slices.Equal(container.Args, old.Args) && len(container.VolumeMounts) == len(old.VolumeMounts) &&
		len(container.Env) == len(old.Env) && j.Name == was.Name, "the patch has changed more than it says:\n%s", text)
}

// kubectl patch --local uses the same package. The name is removed because the patch would also rename the Job.
func TestExampleIsKubectlPatch(t *testing.T) {
	name := regexp.MustCompile(`(?m)^  name: .*\n`)
	patch := must(yaml.ToJSON(name.ReplaceAll(read(t, "examples", "kubernetes", "patch.yaml"), nil)))
	for _, text := range manifests(t) {
		was := indexedJob(t, text)
		job := must(yaml.ToJSON(text))
		merged := must(strategicpatch.StrategicMergePatch(job, patch, batchv1.Job{}))
		checkPatched(t, merged, was)
	}
}

func TestExampleIsKustomizePatch(t *testing.T) {
	for _, text := range manifests(t) {
		files := filesys.MakeFsInMemory()
		for name, content := range map[string][]byte{
			"job.yaml": text, "patch.yaml": read(t, "examples", "kubernetes", "patch.yaml"),
			"kustomization.yaml": read(t, "examples", "kubernetes", "kustomization.yaml"),
		} {
			if err := files.WriteFile(name, content); err != nil {
				t.Fatal(err)
			}
		}
		made := must(krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, "."))
		out := must(made.AsYaml())
		checkPatched(t, out, indexedJob(t, text))
		j := indexedJob(t, out)
		check(t, j.Namespace == "loads", "namespace %q", j.Namespace)
	}
}

func TestUnrestrictedPodsAreDetected(t *testing.T) {
	for what, change := range map[string]func(*corev1.PodSpec){
		"seccompProfile": func(p *corev1.PodSpec) { p.SecurityContext.SeccompProfile = nil },
		"capabilities":   func(p *corev1.PodSpec) { p.Containers[0].SecurityContext.Capabilities = nil },
		"host path": func(p *corev1.PodSpec) {
			p.Volumes[0].VolumeSource = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
		},
		"root": func(p *corev1.PodSpec) { p.SecurityContext.RunAsNonRoot = nil },
	} {
		for file, text := range manifests(t) {
			pod := &indexedJob(t, text).Spec.Template.Spec
			if change(pod); restricted(pod) == nil {
				t.Errorf("%s without %s passes", file, what)
			}
		}
	}
}
