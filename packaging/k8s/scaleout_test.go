package k8s

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// indexedJob decodes a Job and checks what the API server asks of one with a limit of attempts for each index.
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
	if s.CompletionMode == nil || *s.CompletionMode != batchv1.IndexedCompletion || s.Completions == nil || s.Parallelism == nil || s.BackoffLimitPerIndex == nil {
		t.Fatalf("%s is not an Indexed Job with a limit for each index", j.Name)
	}
	if *s.Completions < 1 || *s.Completions > 10_000 || *s.Parallelism != *s.Completions || s.BackoffLimit != nil || s.Suspend != nil {
		t.Errorf("%s: %d completions, %d at a time", j.Name, *s.Completions, *s.Parallelism)
	}
	if s.PodReplacementPolicy == nil || *s.PodReplacementPolicy != batchv1.Failed {
		t.Errorf("%s: a pod may be replaced while it still writes", j.Name)
	}
	// The name of a pod is that of the Job, the index and six more characters.
	if why := validation.IsDNS1123Label(j.Name + "-99999-abcde"); len(why) > 0 {
		t.Errorf("the name %q: %v", j.Name, why)
	}
	return j
}

// manifests are those that tsimport manifests prints, which the tests of jobs/scaleout/kubernetes keep.
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
		if r.Cpu().IsZero() || r.Memory().IsZero() || r.StorageEphemeral().IsZero() {
			t.Errorf("%s requests %v", file, r)
		}
		one, all := batchv1.PodFailurePolicyActionFailIndex, batchv1.PodFailurePolicyActionFailJob
		want := map[int32]batchv1.PodFailurePolicyAction{2: one, 3: one, 4: all, 5: all, 6: one, 7: one}
		for code := range int32(256) {
			if is := action(j.Spec.PodFailurePolicy, "tsimport", code); is != cmp.Or(want[code], batchv1.PodFailurePolicyActionCount) {
				t.Errorf("%s: after exit code %d: %s", file, code, is)
			}
		}
	}
}

// checkPatched checks that a manifest has what the patch of the example says, and all that it had.
func checkPatched(t *testing.T, text []byte, was *batchv1.Job) {
	t.Helper()
	j := indexedJob(t, text)
	pod, container := &j.Spec.Template.Spec, &j.Spec.Template.Spec.Containers[0]
	if j.Labels["kueue.x-k8s.io/queue-name"] != "loads" || len(j.Labels) != len(was.Labels)+1 || j.Spec.TTLSecondsAfterFinished == nil || pod.ServiceAccountName != "loader" ||
		len(pod.ImagePullSecrets) != 1 || len(pod.Tolerations) != 1 || pod.NodeSelector["node.kubernetes.io/instance-type"] == "" {
		t.Errorf("the patch is not applied:\n%s", text)
	}
	old := &was.Spec.Template.Spec.Containers[0]
	if len(pod.Containers) != 1 || container.Resources.Requests.Cpu().Value() != 3 || !container.Resources.Requests.Memory().Equal(*old.Resources.Requests.Memory()) ||
		!slices.Equal(container.Args, old.Args) || len(container.VolumeMounts) != len(old.VolumeMounts) || len(container.Env) != len(old.Env) || j.Name != was.Name {
		t.Errorf("the patch has changed more than it says:\n%s", text)
	}
}

// kubectl patch --local uses this package. It would also rename the Job.
func TestExampleIsAKubectlPatch(t *testing.T) {
	name := regexp.MustCompile(`(?m)^  name: .*\n`)
	patch, err := yaml.ToJSON(name.ReplaceAll(read(t, "examples", "kubernetes", "patch.yaml"), nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range manifests(t) {
		was := indexedJob(t, text)
		job, err := yaml.ToJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		merged, err := strategicpatch.StrategicMergePatch(job, patch, batchv1.Job{})
		if err != nil {
			t.Fatal(err)
		}
		checkPatched(t, merged, was)
	}
}

func TestExampleIsAKustomizePatch(t *testing.T) {
	for _, text := range manifests(t) {
		files := filesys.MakeFsInMemory()
		for name, content := range map[string][]byte{
			"job.yaml": text, "patch.yaml": read(t, "examples", "kubernetes", "patch.yaml"), "kustomization.yaml": read(t, "examples", "kubernetes", "kustomization.yaml"),
		} {
			if err := files.WriteFile(name, content); err != nil {
				t.Fatal(err)
			}
		}
		made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, ".")
		if err != nil {
			t.Fatal(err)
		}
		out, err := made.AsYaml()
		if err != nil {
			t.Fatal(err)
		}
		checkPatched(t, out, indexedJob(t, text))
		if j := indexedJob(t, out); j.Namespace != "loads" {
			t.Errorf("namespace %q", j.Namespace)
		}
	}
}

func TestUnrestrictedPodsAreFound(t *testing.T) {
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
