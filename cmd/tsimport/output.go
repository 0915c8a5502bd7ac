package main

import (
	"errors"
	"fmt"
	"io"
	"os"
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
	// What others may have put there, as a link to another file, is removed and not written to.
	if info, err := os.Lstat(path + ".part"); err == nil && !info.IsDir() {
		if err := os.Remove(path + ".part"); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(path+".part", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return fmt.Errorf("create output: %w", err)
	}
	err = errors.Join(write(f), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(path+".part", path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(path+".part"))
	}
	return nil
}
