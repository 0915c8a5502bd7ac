package copytable

import (
	"fmt"
	"strings"
)

// SameKeysError says that rows of the source have one key in the target: only one of them would be left.
type SameKeysError struct {
	Source   string
	Rows     int64    // of the source
	Lost     int64    // of them, those whose key another row has as well
	Examples []string // of such keys
}

func (e *SameKeysError) Error() string {
	return fmt.Sprintf("%d of the %d rows of %s would be lost: the key expressions make several rows one, as with %s; add columns of the source's key to that of the target",
		e.Lost, e.Rows, e.Source, strings.Join(e.Examples, ", "))
}
