package commands

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
)

// startProfiles starts the requested profiles. stop ends and writes them.
func startProfiles(c *call) (stop func() error, err error) {
	stop = func() error { return nil }
	if name := c.of.CPUProfile; name != "" {
		f, err := createOutput(c, name, os.O_TRUNC)
		if err == nil {
			err = pprof.StartCPUProfile(f)
		}
		if err != nil {
			return nil, usagef("--cpu-profile %s: %v", name, err)
		}
		stop = func() error {
			pprof.StopCPUProfile()
			return closeProfile(f, nil)
		}
	}
	if name := c.of.AllocationsProfile; name != "" {
		f, err := createOutput(c, name, os.O_TRUNC)
		if err != nil {
			return nil, errors.Join(usagef("--allocations-profile %s: %v", name, err), stop())
		}
		runtime.MemProfileRate = 1
		before := stop
		stop = func() error {
			return errors.Join(before(), closeProfile(f, pprof.Lookup("allocs").WriteTo(f, 0)))
		}
	}
	return stop, nil
}

func closeProfile(f *os.File, err error) error {
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write profile %s: %w", f.Name(), err)
	}
	return nil
}
