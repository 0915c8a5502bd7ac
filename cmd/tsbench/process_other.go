//go:build !unix

package main

import "os"

// peakRSS is not known.
func peakRSS(*os.ProcessState) int64 { return 0 }
