//go:build e2e

package e2e

import "testing"

// TestMoreScripts runs the scripts of what commands refuse, count and choose.
func TestMoreScripts(t *testing.T) { runScripts(t, "testdata/morescripts") }
