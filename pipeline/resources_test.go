//go:build unix

package pipeline

import (
	"example.com/tsimport/internal/conformance"
	"testing"
)

func TestPeakMemoryExcludesParentProcess(t *testing.T) {
	n, ok := highWater([]byte("Name:\ttsimport\nVmPeak:\t 1851536 kB\nVmHWM:\t  154204 kB\nVmRSS:\t  101112 kB\n"))
	conformance.True(t, ok && n == 154204*1024, "%d bytes, %v", n, ok)
	_, ok = highWater([]byte("Name:\ttsimport\n"))
	conformance.True(t, !ok, "found where there is none")
	cpu, peak := Resources()
	conformance.True(t, cpu > 0 && peak >= 1<<20, "%v CPU seconds, %d bytes", cpu, peak)
}
