//go:build !linux

package conformance

func inMemory() string { return "" }
