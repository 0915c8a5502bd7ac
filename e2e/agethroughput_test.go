//go:build e2e

package e2e

import (
	"strings"
	"testing"
)

// TestThroughputIsPacedAsTheServiceWants changes it three times without a pause of its own, and then at a service that wants longer ones
// than are given.
func TestThroughputIsPacedAsTheServiceWants(t *testing.T) {
	t.Parallel()
	a := newAging(t, "1s")
	a.args = with(a.args, "--throughput-interval", "1s")
	policy := a.read("policy.yaml")
	for _, units := range []string{"4", "6", "5"} {
		a.write("policy.yaml", strings.ReplaceAll(policy, "read: 5", "read: "+units))
		a.run(0, a.args...)
	}
	a.check()

	a = newAging(t, "1h")
	a.run(0, a.args...)
	a.write("policy.yaml", "period: month\nclasses: [{reserved: {read: 1}}]")
	a.ends(1, []string{"age", "--policy", "policy.yaml", "--table", "c_{month}", "--apply", "--throughput-interval", "0s"},
		"refused 10 times in a row", "give a longer --throughput-interval")
	a.check()
}
