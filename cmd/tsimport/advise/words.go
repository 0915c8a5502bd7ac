package advise

import (
	"fmt"
	"strconv"

	"example.com/tsimport/internal/words"
)

// shown is a value as people read it.
func shown(text []byte) string {
	const most = 60
	runes := []rune(string(text))
	if len(runes) > most {
		runes = append(runes[:most], '…')
	}
	return string(runes)
}

// times is a growth as people read it.
func times(growth float64) string {
	if growth == float64(int64(growth)) {
		return words.Grouped(int64(growth))
	}
	return strconv.FormatFloat(growth, 'f', -1, 64)
}

func percent(share float64) string {
	switch {
	case share >= 0.995:
		return "100 %"
	case share >= 0.1:
		return fmt.Sprintf("%.0f %%", 100*share)
	case share >= 0.001:
		return fmt.Sprintf("%.1f %%", 100*share)
	case share > 0:
		return "under 0.1 %"
	}
	return "0 %"
}

// bytesText is a size as people read it.
func bytesText(n int64) string {
	for _, u := range []struct {
		bytes float64
		name  string
	}{{1 << 40, "TB"}, {1 << 30, "GB"}, {1 << 20, "MB"}, {1 << 10, "KB"}} {
		if float64(n) >= u.bytes {
			return fmt.Sprintf("%.1f %s", float64(n)/u.bytes, u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
