package commands

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/pipeline/options"
)

// notFromEnvironment lists command flags that must be typed, like options that are Typed.
var notFromEnvironment = []string{"apply", "yes", "schema", "older-than", "help", "version"}

// olderNames maps flags to environment variables that predate the general scheme.
var olderNames = map[string]string{"endpoint": endpointEnv, "instance": instanceEnv}

// variableOf returns the environment variable of a flag, or "" if it has none.
func variableOf(flag string) string {
	if o := options.Find(flag); o != nil && o.Typed || slices.Contains(notFromEnvironment, flag) {
		return ""
	}
	return "TSIMPORT_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromEnvironment returns the value of a flag's environment variable.
func fromEnvironment(flag string) (value, variable string, ok bool) {
	for _, variable := range []string{variableOf(flag), olderNames[flag]} {
		if variable == "" {
			continue
		}
		if value := os.Getenv(variable); value != "" {
			return value, variable, true
		}
	}
	return "", "", false
}

// environmentOf returns the values of a flag's variable, or nil if that is missing or empty.
func environmentOf(flag string, repeated bool) []string {
	variable := variableOf(flag)
	text := os.Getenv(variable)
	switch {
	case variable == "" || text == "":
		return nil
	case repeated:
		return strings.Split(text, "\n")
	}
	return []string{text}
}

// takeEnvironment sets flags from environment variables, unless the command line sets them, and records which.
func (in *invocation) takeEnvironment(l *line) error {
	for _, f := range l.Command.Flags {
		name := f.Names()[0]
		values := environmentOf(name, repeatable(f))
		if v, ok := f.(cli.VisibleFlag); values == nil || l.IsSet(name) || ok && !v.IsVisible() {
			continue
		}
		for _, value := range values {
			if err := l.Set(name, value); err != nil {
				err = fmt.Errorf("invalid value %q for flag -%s: %w", value, name, err)
				return usagef("%s: %v", variableOf(name), wrongFlag(err, l.Command.HelpName, l.Command.Flags))
			}
			if err := checkPath(f, variableOf(name)+": --"+name, value); err != nil {
				return err
			}
		}
		if !slices.Contains(in.ofEnv, name) {
			in.ofEnv = append(in.ofEnv, name)
		}
	}
	return nil
}

// versionText returns the output of --version: version, revision (if built in a clone), compiler and platform.
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
