//go:build !unix

package pipeline

// resources is not known on this system.
func resources() (cpuSeconds float64, peakRSSBytes int64) { return 0, 0 }
