package kubernetes

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
)

var must = conformance.Must

var update = flag.Bool("update", false, "write the golden manifests")

func job3() Options {
	return Options{
		Name: "tsimport-orders", Plan: "1a2b3c4d", Namespace: "loads", Image: "registry.example/tsimport:v1", JobDir: "oss://jobs/orders-1", Workers: 20,
		Stages:      []Stage{{"read", 200}, {"write", 40}, {"verify", 40}, {"finish", 1}},
		Secret:      "tablestore",
		Env:         []EnvVar{{"TABLESTORE_ENDPOINT", "https://shop.cn-hangzhou.ots.aliyuncs.com"}},
		CPU:         "1",
		MemoryBytes: 2 << 30,
	}
}

// The module k8s decodes these files into the API's types.
func TestManifestsAreAsBefore(t *testing.T) {
	shared := job3()
	shared.Name, shared.JobDir, shared.Claim, shared.MountPath, shared.Secret, shared.ServiceAccount = "tsimport-shared", "/mnt/jobs/1", "shared", "/mnt", "", "loader"
	shared.Stages = []Stage{{"read", 3}, {"write", maxParallelism + 1}, {"finish", 1}}
	for name, o := range map[string]Options{"objects.yaml": job3(), "folder.yaml": shared} {
		manifests, err := Manifests(o)
		must(t, err)
		got, file := bytes.Join(manifests, []byte("---\n")), filepath.Join("testdata", name)
		if *update {
			must(t, os.WriteFile(file, got, 0o644))
		}
		want, err := os.ReadFile(file)
		must(t, err)
		if !bytes.Equal(got, want) {
			t.Errorf("%s is different (-update writes it):\n%s", name, got)
		}
	}
}

func TestWhatPodsCannotReachIsRefused(t *testing.T) {
	for what, change := range map[string]func(*Options){
		"pods do not reach the folder": func(o *Options) { o.JobDir = "/mnt/jobs" },
		"is not below /mnt":            func(o *Options) { o.JobDir, o.Claim, o.MountPath = "/mnts/jobs", "shared", "/mnt" },
		"cannot be the name of Jobs":   func(o *Options) { o.Name = "Orders_1" },
		"no image":                     func(o *Options) { o.Image = "" },
		"at most 100000":               func(o *Options) { o.Stages[0].Tasks = maxIndexes + 1 },
	} {
		o := job3()
		change(&o)
		if _, err := Manifests(o); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("want %q, got %v", what, err)
		}
	}
}

// fakeKubectl is a program that notes its calls and answers from a script.
func fakeKubectl(t *testing.T, script string) (calls string) {
	t.Helper()
	dir := t.TempDir()
	calls = filepath.Join(dir, "calls")
	text := fmt.Sprintf("#!/bin/sh\necho \"$@\" >> %s\n%s\n", calls, script)
	must(t, os.WriteFile(filepath.Join(dir, "kubectl"), []byte(text), 0o755))
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	return calls
}

func TestStagesAreAppliedOneAfterTheOther(t *testing.T) {
	calls := fakeKubectl(t, `case "$1" in apply) ! grep suspend;; get) echo '{"status":{"succeeded":1,"conditions":[{"type":"Complete","status":"True"}]}}';; esac`)
	must(t, Apply(context.Background(), job3(), t.Logf))
	text, err := os.ReadFile(calls)
	must(t, err)
	var jobs []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(strings.TrimSpace(line), "--namespace loads") {
			t.Errorf("not in the namespace: %s", line)
		}
		if f := strings.Fields(line); f[0] == "get" {
			jobs = append(jobs, f[2])
		}
	}
	if want := []string{"tsimport-orders-1a2b3c4d-read", "tsimport-orders-1a2b3c4d-write", "tsimport-orders-1a2b3c4d-verify", "tsimport-orders-1a2b3c4d-finish"}; !slices.Equal(jobs, want) {
		t.Errorf("jobs %q, want %q", jobs, want)
	}
}

func TestAFailedStageEndsTheOthers(t *testing.T) {
	calls := fakeKubectl(t, `case "$1" in apply) cat > /dev/null;; get) case "$3" in *-write) t=Failed;; *) t=Complete;; esac
echo '{"status":{"conditions":[{"type":"'$t'","status":"True","reason":"PodFailurePolicy","message":"exit code 5"}]}}';; esac`)
	err := Apply(context.Background(), job3(), t.Logf)
	if err == nil || !strings.Contains(err.Error(), "tsimport-orders-1a2b3c4d-write failed: PodFailurePolicy: exit code 5") {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(calls); strings.Contains(string(text), "verify") {
		t.Errorf("a stage after the failed one was begun:\n%s", text)
	}
}

func TestWaitingForAStageCanBeStopped(t *testing.T) {
	fakeKubectl(t, `case "$1" in apply) cat > /dev/null;; get) echo '{"status":{"succeeded":0}}';; esac`)
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() {
		stopped <- Apply(ctx, job3(), func(format string, a ...any) {
			if strings.Contains(fmt.Sprintf(format, a...), "0 of 200 done") {
				stop()
			}
		})
	}()
	select {
	case err := <-stopped:
		conformance.Is(t, err, context.Canceled, "error")
	case <-time.After(5 * time.Minute):
		t.Error("it waits on")
	}
}

func TestWithoutKubectlItSaysWhatToDo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	conformance.Refused(t, Apply(context.Background(), job3(), t.Logf), "without it", "error")
}
