//go:build !unix

package pipeline

// Resources returns zeros: the use of resources is unknown on this system.
func Resources() (cpuSeconds float64, peakRSSBytes int64) { return 0, 0 }

func processors() float64 { return 0 }

func processorWait() (seconds float64) { return 0 }
