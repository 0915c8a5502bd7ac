package notices

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
)

// legal matches the names of files with licences, notices and patent grants.
var legal = regexp.MustCompile(
	`(?i)^([a-z]+[_-])?(licen[sc]es?|copying|copyright|notice|patents)([._-][a-z0-9]+)*(\.txt|\.md)?$`)

// text is a licence or notice. of lists where it is from: the path and version of each module, and the file in it.
type text struct {
	body string
	of   []string
}

var update = flag.Bool("update", false, "write THIRD_PARTY_NOTICES")

const root, program = "../..", "tsimport"

// TestNoticesMatchBuiltModules compares the file with the notices of tsimport's modules or, with -update, writes it. A
// first build downloads the modules of its own system only, so the test downloads the others or, offline, is skipped.
func TestNoticesMatchBuiltModules(t *testing.T) {
	file := filepath.Join(root, "THIRD_PARTY_NOTICES")
	want := collect(t)
	if *update {
		conformance.Must(t, os.WriteFile(file, want, 0o644))
		return
	}
	got := conformance.Try(os.ReadFile(file)).Must(t)
	conformance.Equal(t, bytes.Equal(got, want), true, "%s does not fit %s's modules; run make notices", file, program)
}

func collect(t *testing.T) []byte {
	var out []byte
	for _, system := range []string{"linux", "darwin", "windows"} { // of the releases, which are built without cgo
		list := exec.Command("go", "list", "-mod=readonly", "-deps", "-f",
			"{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}\t{{$.Dir}}{{end}}{{end}}", "./cmd/"+program)
		list.Dir = root
		list.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=")
		var stderr bytes.Buffer
		list.Stderr = &stderr
		part, err := list.Output()
		if err != nil && strings.Contains(stderr.String(), "go: downloading ") {
			t.Skipf("NOT CHECKED: a module cannot be downloaded: %s", stderr.String())
		}
		conformance.MustTrue(t, err == nil, "go list: %v, %s", err, stderr.String())
		out = append(out, part...)
	}
	texts := map[string]*text{}
	add := func(of, dir, prefix string) (found int) {
		for _, e := range conformance.Try(os.ReadDir(dir)).Must(t) {
			if !legal.MatchString(e.Name()) || e.IsDir() {
				continue
			}
			body := conformance.Try(os.ReadFile(filepath.Join(dir, e.Name()))).Must(t)
			found++
			key := strings.TrimSpace(strings.ReplaceAll(string(body), "\r\n", "\n"))
			if texts[key] == nil {
				texts[key] = &text{body: key}
			}
			if name := of + ", " + prefix + e.Name(); !slices.Contains(texts[key].of, name) {
				texts[key].of = append(texts[key].of, name)
			}
		}
		return found
	}
	add("uPlot, in pages of charts", filepath.Join(root, "internal/page/uplot"), "internal/page/uplot/")
	modules := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		fields := strings.Split(line, "\t")
		if len(fields) != 4 || fields[0] == "example.com/tsimport" {
			continue // the standard library, or this module
		}
		of, dir, pkg := fields[0]+" "+fields[1], fields[2], fields[3]
		if !modules[of] {
			modules[of] = true
			conformance.True(t, add(of, dir, "") != 0, "%s has no licence", of)
			if fields[0] == "golang.org/x/sys" {
				add("Go and its standard library", dir, "") // has the same licence as Go; some installations of Go lack the file
			}
			if _, err := os.Stat(filepath.Join(dir, "licenses")); err == nil {
				add(of, filepath.Join(dir, "licenses"), "licenses/")
			}
		}
		for ; len(pkg) > len(dir); pkg = filepath.Dir(pkg) { // folders may hold code of third parties
			add(of, pkg, filepath.ToSlash(pkg[len(dir)+1:])+"/")
		}
	}
	return format(texts, len(modules))
}

func format(texts map[string]*text, modules int) []byte {
	var all []*text
	for _, x := range texts {
		slices.Sort(x.of)
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b *text) int { return strings.Compare(a.of[0], b.of[0]) })
	var b bytes.Buffer
	fmt.Fprintf(&b, "Third-party notices of %s: the licences of Go and of %d modules that its binary contains.\nMade by "+
		"make notices; do not edit.\n", program, modules)
	for _, x := range all {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(x.of, "\n"), x.body)
	}
	return b.Bytes()
}
