package open

import (
	"fmt"
	"testing"

	"example.com/tsimport/internal/conformance"
)

func TestAnAddressSaysHowADatabaseIsRead(t *testing.T) {
	for arg, want := range map[string]string{
		"postgres://u@h/d?table=t":                                        "postgres://u@h/d?table=t 4 0s",
		"postgres://u@h/d?sessions=1&table=t&sslmode=disable&max-lag=10s": "postgres://u@h/d?table=t&sslmode=disable 1 10s",
		"sqlite:a.db?sessions=64":                                         "sqlite:a.db 64 0s",
		"sqlite:a.db":                                                     "sqlite:a.db 4 0s",
		"postgres://u@h/d?table=sessions&key=max-lag":                     "postgres://u@h/d?table=sessions&key=max-lag 4 0s",
		"postgres://u@h/d?sessions=0":                                     "want 1 to 64",
		"postgres://u@h/d?sessions=65":                                    "want 1 to 64",
		"postgres://u@h/d?sessions=":                                      "want 1 to 64",
		"postgres://u@h/d?max-lag=1ms":                                    "want 1s or more",
		"postgres://u@h/d?max-lag=10":                                     "want 1s or more",
		"postgres://u@h/d?table=t&sessions=x&unknown=%%%&a=%20":           "want 1 to 64",
	} {
		address, reading := cutReading(arg)
		cfg, err := readingOf(reading)
		if err != nil {
			conformance.Contains(t, err.Error(), want, "%s: %v", arg, err)
			continue
		}
		conformance.Equal(t, fmt.Sprintf("%s %d %v", address, cfg.Sessions, cfg.MaxLag), want, "%s", arg)
	}
}
