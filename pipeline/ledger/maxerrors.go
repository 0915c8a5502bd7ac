package ledger

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxErrors is the number or share of rejected rows above which the load stops.
type MaxErrors struct {
	Rows    int64 // -1 means no limit
	Percent float64
	Share   bool // the limit is Percent instead of Rows
}

// percentFrom is the number of rows from which on a share is measured: a bad first row would be 100 %.
const percentFrom = 1000

// ParseMaxErrors parses N or N%.
func ParseMaxErrors(text string) (MaxErrors, error) {
	if number, ok := strings.CutSuffix(text, "%"); ok {
		p, err := strconv.ParseFloat(number, 64)
		if err != nil || !(p >= 0 && p <= 100) {
			return MaxErrors{}, fmt.Errorf("--max-errors %q: want 0%% to 100%%", text)
		}
		return MaxErrors{Percent: p, Share: true}, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < -1 {
		return MaxErrors{}, fmt.Errorf("--max-errors %q: want a number, a percentage such as 1%%, or -1 for no limit", text)
	}
	return MaxErrors{Rows: n}, nil
}

// Exceeded reports whether the load must stop. At the end of a load, a share is measured over any number of rows.
func (m MaxErrors) Exceeded(rejected, read int64, end bool) bool {
	if m.Share {
		return rejected > 0 && (end || read >= percentFrom) && float64(rejected)*100 > m.Percent*float64(read)
	}
	return m.Rows >= 0 && rejected > m.Rows
}
