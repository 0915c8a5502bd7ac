package commands

import (
	"errors"
	"fmt"
	"io"
	"os"

	"tsimport/internal/atomicfile"
)

// writeOutput writes to a file, which appears under its name only when it is whole, or to stdout.
func writeOutput(path string, stdout io.Writer, write func(io.Writer) error) error {
	if path == "" || path == "-" {
		return write(stdout)
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		// A pipe or a device cannot be replaced by renaming.
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("open output: %w", err)
		}
		return errors.Join(write(f), f.Close())
	}
	return atomicfile.Write(path, atomicfile.Options{Perm: 0o666}, write)
}
