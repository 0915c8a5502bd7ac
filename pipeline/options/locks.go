package options

import (
	"os"
	"path/filepath"
)

// LocksDir is where loads of the user are locked on this machine, from any working folder; "" if there is no place.
func LocksDir() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "tsimport", "locks")
}
