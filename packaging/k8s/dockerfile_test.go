package k8s

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

func stages(text []byte) (all []instructions.Stage, warnings []string, err error) {
	parsed, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		return nil, nil, err
	}
	for _, w := range parsed.Warnings {
		warnings = append(warnings, w.Short)
	}
	all, _, err = instructions.Parse(parsed.AST, nil)
	return all, warnings, err
}

func dockerfile(t *testing.T) []byte {
	return must(os.ReadFile("../../Dockerfile"))
}

func TestImageRunsBinaryUnprivileged(t *testing.T) {
	all, warnings, err := stages(dockerfile(t))
	if err != nil || len(warnings) > 0 || len(all) != 2 {
		t.Fatalf("%d stages, %v, %q", len(all), err, warnings)
	}
	image := all[1]
	check(t, image.BaseName == "scratch", "the image is made from %s", image.BaseName)
	var copied []string
	found := map[string]bool{}
	for _, command := range image.Commands {
		found[strings.ToLower(command.Name())] = true
		switch c := command.(type) {
		case *instructions.CopyCommand:
			check(t, c.From == all[0].Name, "COPY takes from %q, and the stage is %q", c.From, all[0].Name)
			copied = append(copied, c.SourcePaths...)
		case *instructions.UserCommand:
			if user, _, _ := strings.Cut(c.User, ":"); user == "0" || user == "root" || strings.Trim(user, "0123456789") != "" {
				t.Errorf("it runs as %s: want a number that is not root's, for Kubernetes' runAsNonRoot", c.User)
			}
		case *instructions.EntrypointCommand:
			check(t, !c.PrependShell && slices.Equal([]string(c.CmdLine), []string{"/usr/bin/tsimport"}),
				"ENTRYPOINT %q, by a shell %v; there is none in the image", c.CmdLine, c.PrependShell)
		case *instructions.RunCommand:
			t.Error("RUN: there is nothing in the image to run it")
		}
	}
	for _, want := range []string{"copy", "user", "volume", "workdir", "entrypoint", "env"} {
		check(t, found[want], "the image has no %s", strings.ToUpper(want))
	}
	for _, want := range []string{"/etc/ssl/certs/ca-certificates.crt", "/out/tsimport"} {
		check(t, slices.Contains(copied, want), "%s is not copied into the image: %q", want, copied)
	}
}

func TestDockerfileMistakesAreDetected(t *testing.T) {
	for from, to := range map[string]string{"VOLUME /data": "VOLUMES /data", "FROM scratch": "FROM",
		"COPY --from=build /out/tsimport": "COPY --form=build /out/tsimport"} {
		wrong := bytes.Replace(dockerfile(t), []byte(from), []byte(to), 1)
		if bytes.Equal(wrong, dockerfile(t)) {
			t.Fatalf("%q is not in the Dockerfile", from)
		}
		_, _, err := stages(wrong)
		check(t, err != nil, "%s in place of %s is taken", to, from)
	}
}
