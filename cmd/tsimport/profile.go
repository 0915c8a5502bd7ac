package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/pprof"

	"github.com/urfave/cli/v2"
)

// profileFlag is for those who look into the tool itself.
func profileFlag() cli.Flag {
	return &cli.StringFlag{Name: "cpu-profile", Usage: "write a CPU profile to `FILE`", Hidden: true}
}

// startProfile begins a CPU profile if the user asked for one and returns what ends it.
func startProfile(c *cli.Context) (stop func() error, err error) {
	file := c.String("cpu-profile")
	if file == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(file)
	if err == nil {
		err = pprof.StartCPUProfile(f)
	}
	if err != nil {
		return nil, usagef("--cpu-profile %s: %v", file, err)
	}
	return func() error {
		pprof.StopCPUProfile()
		if err := f.Close(); err != nil {
			return fmt.Errorf("write CPU profile: %w", errors.Unwrap(err))
		}
		return nil
	}, nil
}
