package commands

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// versionText is what --version shows: a release's version, the revision that was built, the compiler, and what it was
// built for. A build outside of a clone knows no revision.
func versionText(info *debug.BuildInfo, ok bool) string {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	if !ok {
		return fmt.Sprintf("unknown (%s, %s)", runtime.Version(), platform)
	}
	version := info.Main.Version
	if version == "" || version == "(devel)" {
		version = "development"
	}
	revision, modified := "unknown", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = ", modified"
		}
	}
	return fmt.Sprintf("%s (revision %s%s, %s, %s)", version, revision, modified, info.GoVersion, platform)
}
