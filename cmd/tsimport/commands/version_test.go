package commands

import (
	"runtime"
	"runtime/debug"
	"testing"

	"example.com/tsimport/internal/conformance"
)

func TestVersionTellsWhatWasBuilt(t *testing.T) {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	devel := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: "(devel)"}}
	clone := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}, {Key: "vcs.modified", Value: "true"},
	}}
	for want, got := range map[string]string{
		"development (revision unknown, go1.26.8, " + platform + ")":           versionText(devel, true),
		"v1.2.3 (revision 0123456789ab, modified, go1.26.8, " + platform + ")": versionText(clone, true),
		"unknown (" + runtime.Version() + ", " + platform + ")":                versionText(nil, false),
	} {
		conformance.Equal(t, got, want, "got")
	}
}
