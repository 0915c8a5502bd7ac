package commands

import (
	"fmt"
	"strings"
	"testing"
)

func TestAnAddressSaysHowADatabaseIsRead(t *testing.T) {
	for arg, want := range map[string]string{
		"postgres://u@h/d?table=t":                                           "postgres://u@h/d?table=t 4 0s false",
		"postgres://u@h/d?sessions=1&table=t&sslmode=disable&max-lag=10s":    "postgres://u@h/d?table=t&sslmode=disable 1 10s false",
		"mysql://u@h/d?table=t&snapshot=required":                            "mysql://u@h/d?table=t 4 0s true",
		"sqlite:a.db?sessions=64":                                            "sqlite:a.db 64 0s false",
		"sqlite:a.db":                                                        "sqlite:a.db 4 0s false",
		"postgres://u@h/d?table=sessions&key=max-lag":                        "postgres://u@h/d?table=sessions&key=max-lag 4 0s false",
		"postgres://u@h/d?sessions=0":                                        "want 1 to 64",
		"postgres://u@h/d?sessions=65":                                       "want 1 to 64",
		"postgres://u@h/d?sessions=":                                         "want 1 to 64",
		"postgres://u@h/d?max-lag=1ms":                                       "want 1s or more",
		"postgres://u@h/d?max-lag=10":                                        "want 1s or more",
		"postgres://u@h/d?table=t&snapshot=yes&sessions=1&unknown=%%%&a=%20": "want required",
	} {
		address, reading := cutReading(arg)
		cfg, err := readingOf(reading)
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", arg, err, want)
			}
			continue
		}
		if got := fmt.Sprintf("%s %d %v %v", address, cfg.Sessions, cfg.MaxLag, cfg.Whole); got != want {
			t.Errorf("%s: %s, want %s", arg, got, want)
		}
	}
}
