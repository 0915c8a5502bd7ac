package k8s

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// The manifests that tsimport manifests prints are kept by the tests of scaleout/kubernetes.
func TestTheJobsOfManyMachinesAreThoseOfTheAPI(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "jobs", "scaleout", "kubernetes", "testdata", "*.yaml"))
	if err != nil || len(files) < 2 {
		t.Fatalf("%d files of manifests: %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, one := range bytes.Split(text, []byte("---\n")) {
			object, err := decode(one)
			if err != nil {
				t.Fatalf("%s: %v\n%s", file, err, one)
			}
			j, ok := object.(*batchv1.Job)
			if !ok {
				t.Fatalf("%s holds a %T", file, object)
			}
			checkPod(t, &j.Spec.Template.Spec)
			checkFailures(t, &j.Spec)
			checkIndexed(t, j)
			if suspended := j.Spec.Suspend != nil && *j.Spec.Suspend; suspended != (i > 0) {
				t.Errorf("%s: suspended: %v", j.Name, suspended)
			}
		}
	}
}

// checkIndexed checks what the API server asks of Jobs with a limit of attempts for each index.
func checkIndexed(t *testing.T, j *batchv1.Job) {
	t.Helper()
	s := &j.Spec
	if s.CompletionMode == nil || *s.CompletionMode != batchv1.IndexedCompletion || s.Completions == nil || s.Parallelism == nil || s.BackoffLimitPerIndex == nil {
		t.Fatalf("%s is not an Indexed Job with a limit for each index", j.Name)
	}
	if *s.Completions < 1 || *s.Completions > 100_000 || *s.Parallelism < 1 || *s.Parallelism > *s.Completions || s.BackoffLimit != nil {
		t.Errorf("%s: %d completions, %d at a time", j.Name, *s.Completions, *s.Parallelism)
	}
	if *s.Completions > 10_000 && (*s.Parallelism > 10_000 || s.MaxFailedIndexes == nil || *s.MaxFailedIndexes > 10_000) {
		t.Errorf("%s: more than 10,000 indexes want maxFailedIndexes and parallelism of at most as many", j.Name)
	}
	if s.PodReplacementPolicy == nil || *s.PodReplacementPolicy != batchv1.Failed {
		t.Errorf("%s: a pod may be replaced while it still writes", j.Name)
	}
	// The name of a pod is that of the Job, the index and six characters more.
	if why := validation.IsDNS1123Label(j.Name + "-99999-abcde"); len(why) > 0 {
		t.Errorf("the name %q: %v", j.Name, why)
	}
}
