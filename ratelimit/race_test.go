//go:build race

package ratelimit

func init() { underRace = true }
