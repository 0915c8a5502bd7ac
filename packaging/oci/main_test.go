package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
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

// written returns the path of a layout made from the repository's Dockerfile, with other files in place of binaries.
func written(t *testing.T) string {
	t.Helper()
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	folder := t.TempDir()
	args := []string{"../..", filepath.Join(folder, "layout"), "v1.2.3"}
	for _, arch := range []string{"amd64", "arm64"} {
		binary := filepath.Join(folder, arch)
		if err := os.WriteFile(binary, []byte("for "+arch), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, arch+"="+binary)
	}
	if err := run(args); err != nil {
		t.Fatal(err)
	}
	return args[1]
}

func TestImageMatchesDockerfile(t *testing.T) {
	top := must(layout.Path(written(t)).ImageIndex())
	err := validate.Index(top)
	check(t, err == nil, "%v", err)
	entries := must(top.IndexManifest()).Manifests
	if len(entries) != 1 || entries[0].Annotations["org.opencontainers.image.ref.name"] != "v1.2.3" {
		t.Fatalf("the layout names %+v", entries)
	}
	images := must(top.ImageIndex(entries[0].Digest))
	var platforms []string
	for _, entry := range must(images.IndexManifest()).Manifests {
		platforms = append(platforms, entry.Platform.String()+entry.ArtifactType)
		checkImage(t, must(images.Image(entry.Digest)), entry.Platform.Architecture)
	}
	want := []string{"linux/amd64", "linux/arm64"}
	check(t, slices.Equal(platforms, want), "images for %q, want %q", platforms, want)
}

func checkImage(t *testing.T, image v1.Image, arch string) {
	config := must(image.ConfigFile())
	want := v1.Config{
		Entrypoint: []string{"/usr/bin/tsimport"}, Env: []string{"HOME=/data", "TMPDIR=/data/tmp"}, User: "65532:65532",
		WorkingDir: "/data", Volumes: map[string]struct{}{"/data": {}},
	}
	check(t, reflect.DeepEqual(config.Config, want) && config.Architecture == arch && config.Created.Unix() == 1700000000,
		"%s: %+v", arch, config)
	for _, layer := range must(image.Layers()) {
		// Go's reader accepts an archive without an end marker, but GNU tar does not.
		data := must(io.ReadAll(must(layer.Uncompressed())))
		check(t, bytes.HasSuffix(data, make([]byte, 1024)), "a layer for %s has no end", arch)
	}
	files, contents := unpacked(t, image)
	names := []string{
		"data 0755 65532", "data/tmp 0755 65532", "etc 0755 0", "etc/ssl 0755 0", "etc/ssl/certs 0755 0",
		"etc/ssl/certs/ca-certificates.crt 0644 0", "LICENSE 0644 0", "THIRD_PARTY_NOTICES 0644 0",
		"usr 0755 0", "usr/bin 0755 0", "usr/bin/tsimport 0755 0",
	}
	check(t, slices.Equal(sorted(files), sorted(names)), "the image for %s holds %q, want %q", arch, files, names)
	got, license := contents["usr/bin/tsimport"], contents["LICENSE"]
	check(t, got == "for "+arch, "the binary for %s is %q", arch, got)
	check(t, license == string(must(os.ReadFile("../../LICENSE"))), "LICENSE is %q", license)
	roots := contents["etc/ssl/certs/ca-certificates.crt"]
	n := strings.Count(roots, "BEGIN CERTIFICATE")
	check(t, n >= 100 && x509.NewCertPool().AppendCertsFromPEM([]byte(roots)), "%d certificates", n)
}

func sorted(lines []string) []string { return slices.Sorted(slices.Values(lines)) }

// unpacked returns the image's files, as text with name, mode and owner, and their contents by name.
func unpacked(t *testing.T, image v1.Image) (files []string, contents map[string]string) {
	t.Helper()
	contents = map[string]string{}
	r := tar.NewReader(mutate.Extract(image))
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, contents
		}
		must(header, err)
		name := strings.TrimSuffix(header.Name, "/")
		check(t, header.Uid == header.Gid && header.ModTime.Unix() == 1700000000,
			"%s is of %d:%d and %s", name, header.Uid, header.Gid, header.ModTime)
		files = append(files, fmt.Sprintf("%s %04o %d", name, header.Mode, header.Uid))
		contents[name] = string(must(io.ReadAll(r)))
	}
}

func TestImageIsReproducible(t *testing.T) {
	first, second := written(t), written(t)
	// The index has the digest of the image index, which depends on everything else.
	index := must(os.ReadFile(filepath.Join(first, "index.json")))
	again := must(os.ReadFile(filepath.Join(second, "index.json")))
	check(t, string(again) == string(index), "after %s: %s", index, again)
}

func TestUnknownInstructionsAreRefused(t *testing.T) {
	dockerfile := string(must(os.ReadFile("../../Dockerfile")))
	for from, to := range map[string]string{
		"FROM scratch":                   "FROM debian",
		"USER 65532:65532":               "LABEL a=b",
		"USER 65532":                     "USER $USER",
		"WORKDIR /data":                  `WORKDIR \`,
		"VOLUME /data":                   `VOLUME ["/data"]`,
		"ENV HOME=/data":                 `ENV HOME="/data"`,
		`["/usr/bin/tsimport"]`:          "/usr/bin/tsimport",
		"--from=build --chown=65532:655": "--from=build --chown=nobody:655",
		"--chown=65532:65532":            "--chmod=700",
		"--from=build /out/tsimport":     "--from=other /out/tsimport",
		"/out/tsimport /usr/bin":         "/usr/bin",
	} {
		wrong := strings.Replace(dockerfile, from, to, 1)
		if wrong == dockerfile {
			t.Fatalf("%q is not in the Dockerfile", from)
		}
		s, err := finalStage(wrong)
		check(t, err != nil, "%s in place of %s is taken: %+v", to, from, s)
	}
	m := maker{source: "../.."}
	for _, from := range []string{"/out/other", "/src/absent", "/out/tsimport"} {
		_, err := m.files(copying{from: []string{from}, to: "/"}, "absent")
		check(t, err != nil, "%s is copied", from)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "")
	for _, args := range [][]string{{"../..", t.TempDir(), "v1"}, {"../..", t.TempDir(), "v1", "amd64=absent"}} {
		err := run(args)
		check(t, err != nil, "it runs with %q", args)
	}
}
