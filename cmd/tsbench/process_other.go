//go:build !unix

package main

import "os"

// peakRSS returns 0, because the peak is unknown on this system.
func peakRSS(*os.ProcessState) int64 { return 0 }
