package atomicfile

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"unicode/utf8"
)

// MaxNameBytes is how long the name of a file can be in the usual file systems.
const MaxNameBytes = 255

// Beside returns the name of a file that belongs to another one: that with the suffix. A name that a file system could not hold is
// shortened, and gets a hash of the whole.
func Beside(name, suffix string) string {
	dir, base := filepath.Split(name)
	if len(base)+len(suffix) <= MaxNameBytes {
		return name + suffix
	}
	sum := sha256.Sum256([]byte(base))
	suffix = fmt.Sprintf("-%x%s", sum[:8], suffix)
	cut := MaxNameBytes - len(suffix)
	for cut > 0 && !utf8.RuneStart(base[cut]) {
		cut--
	}
	return dir + base[:cut] + suffix
}
