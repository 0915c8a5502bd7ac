package kubernetes

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"example.com/tsimport/internal/conformance"
)

var update = flag.Bool("update", false, "write the golden manifests")

func orders() Options {
	return Options{Name: "tsimport-orders", Plan: "1a2b3c4d", Image: "registry.example/tsimport:v1",
		JobDir: "oss://jobs/orders-1", Workers: 20, Secret: "tablestore",
		Env: []EnvVar{{"TABLESTORE_ENDPOINT", "https://shop.cn-hangzhou.ots.aliyuncs.com"}}, MemoryBytes: 2 << 30,
		DiskBytes: 7 << 30}
}

// TestManifestsAreUnchanged compares manifests with files, which packaging/k8s decodes into the API's types.
func TestManifestsAreUnchanged(t *testing.T) {
	shared := orders()
	shared.Name, shared.JobDir, shared.Claim, shared.MountPath, shared.Secret, shared.Workers = "tsimport-shared",
		"/mnt/jobs/1", "shared", "/mnt", "", maxWorkers
	one := orders()
	one.Workers = 1
	conformance.Must(t, conformance.ErrorOf(Manifest(one)))
	for text, want := range map[string]string{"a": "a", "a\nb": `"a\nb"`, "1": `"1"`} {
		conformance.Equal(t, conformance.Try(scalar(text)).Must(t), want, "a scalar")
	}
	for name, o := range map[string]Options{"objects.yaml": orders(), "folder.yaml": shared} {
		got := conformance.Try(Manifest(o)).Must(t)
		file := filepath.Join("testdata", name)
		if *update {
			conformance.Must(t, os.WriteFile(file, got, 0o644))
		}
		want := conformance.Try(os.ReadFile(file)).Must(t)
		conformance.Equal(t, bytes.Equal(got, want), true, "%s is different (-update writes it):\n%s", name, got)
	}
}

func TestInvalidManifestOptionsAreRefused(t *testing.T) {
	for what, change := range map[string]func(*Options){
		"pods cannot reach the folder": func(o *Options) { o.JobDir = "/mnt/jobs" },
		"is not below /mnt":            func(o *Options) { o.JobDir, o.Claim, o.MountPath = "/mnts/jobs", "shared", "/mnt" },
		"cannot be the name of a Job":  func(o *Options) { o.Name = "Orders_1" },
		"no image":                     func(o *Options) { o.Image = "" },
		"--workers 10001":              func(o *Options) { o.Workers = maxWorkers + 1 },
		"--workers 0":                  func(o *Options) { o.Workers = 0 },
	} {
		o := orders()
		change(&o)
		conformance.Refused(t, conformance.ErrorOf(Manifest(o)), what, "error")
	}
}
