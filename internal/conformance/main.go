package conformance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Main runs a package's tests and exits. It collects garbage less often and, unless TMPDIR is set, puts temporary
// folders in memory if a gigabyte is free there, because a load calls fsync about fifteen times. It calls NoService.
func Main(m *testing.M) {
	debug.SetGCPercent(400)
	NoService()
	if folder := inMemory(); folder != "" && os.Getenv("TMPDIR") == "" {
		if err := os.Setenv("TMPDIR", folder); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// NoService unsets the variables that name a service, because tests would write to it.
func NoService() {
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		named := slices.Contains([]string{"TSIMPORT_ENDPOINT", "TSIMPORT_INSTANCE", "TSIMPORT_PROFILE"}, name)
		if named || strings.HasPrefix(name, "TABLESTORE_") && !strings.HasPrefix(name, "TABLESTORE_TEST_") {
			if err := os.Unsetenv(name); err != nil {
				panic(err)
			}
		}
	}
}

// T is a test, one run of a property test, or Sure.
type T interface {
	Helper()
	Fatal(args ...any)
}

// Must ends a test, or one run of a property test, on an unexpected error.
func Must(t T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Sure stands in for a test in generators and models, where no failure is possible. A failure ends the program.
type Sure struct{}

func (Sure) Helper()           {}
func (Sure) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// ErrorOf returns only the error of a call that also returns a value.
func ErrorOf[T any](_ T, err error) error { return err }

// Result holds the two results of a call. Its method Must checks the error.
type Result[V any] struct {
	value V
	err   error
}

// Try returns the results of a call as a Result.
func Try[V any](value V, err error) Result[V] { return Result[V]{value, err} }

// Must returns the value. If the call returned an error, Must ends the test, or one run of a property test.
func (r Result[V]) Must(t T) V {
	t.Helper()
	Must(t, r.err)
	return r.value
}

// True reports a false condition. format and args describe the failure.
func True(t interface {
	Helper()
	Errorf(format string, args ...any)
}, holds bool, format string, args ...any) {
	t.Helper()
	if !holds {
		t.Errorf(format, args...)
	}
}

// MustTrue ends a test, or one run of a property test, on a false condition.
func MustTrue(t T, holds bool, format string, args ...any) {
	t.Helper()
	if !holds {
		t.Fatal(fmt.Sprintf(format, args...))
	}
}

// Equal reports an unexpected value. format and args name it.
func Equal[T comparable](t testing.TB, got, want T, format string, args ...any) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %s, want %s", fmt.Sprintf(format, args...), shown(got), shown(want))
	}
}

// MustEqual ends a test, or one run of a property test, on an unexpected value.
func MustEqual[V comparable](t T, got, want V, format string, args ...any) {
	t.Helper()
	if got != want {
		t.Fatal(fmt.Sprintf(format, args...) + ": got " + shown(got) + ", want " + shown(want))
	}
}

// Same reports values that differ from the wanted ones or are in another order.
func Same[T comparable](t testing.TB, got, want []T, format string, args ...any) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %s, want %s", fmt.Sprintf(format, args...), shown(got), shown(want))
	}
}

// Is reports an error that does not wrap the wanted one.
func Is(t testing.TB, err, want error, format string, args ...any) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", fmt.Sprintf(format, args...), err, want)
	}
}

// Contains reports a text that does not contain the wanted one.
func Contains(t testing.TB, text, want, format string, args ...any) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("%s: %q is not in\n%s", fmt.Sprintf(format, args...), want, text)
	}
}

// Refused reports an error that is nil or lacks the wanted text. "" allows any error.
func Refused(t testing.TB, err error, want, format string, args ...any) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got %v, want an error with %q", fmt.Sprintf(format, args...), err, want)
	}
}

// InALine is like Refused, but also reports an error of several lines.
func InALine(t testing.TB, err error, want, format string, args ...any) {
	t.Helper()
	Refused(t, err, want, format, args...)
	True(t, !strings.Contains(fmt.Sprint(err), "\n"), "an error of several lines: %q", err)
}

// shown formats a value for a message: a string of one line is quoted, a struct has its field names.
func shown(value any) string {
	if text, ok := value.(string); ok && !strings.Contains(text, "\n") {
		return strconv.Quote(text)
	}
	return fmt.Sprintf("%+v", value)
}

// NotForRaces skips the test if -short is set, as make race does. It is for slow tests that start no goroutines.
func NotForRaces(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("with -short: nothing here is for the race detector")
	}
}

// Golden compares a file of testdata with the results for its inputs, the lines that begin with "> ". A result is the
// lines after an input. With UPDATE=1 in the environment, Golden rewrites the results.
func Golden(t testing.TB, file string, result func(input string) string) {
	t.Helper()
	file = filepath.Join("testdata", file)
	want, got := strings.Split(string(Try(os.ReadFile(file)).Must(t)), "\n"), []string(nil)
	for _, line := range want {
		if input, found := strings.CutPrefix(line, "> "); found {
			got = append(append(got, line), strings.Split(strings.TrimSpace(result(input)), "\n")...)
		}
	}
	got = append(got, "")
	if os.Getenv("UPDATE") != "" {
		Must(t, os.WriteFile(file, []byte(strings.Join(got, "\n")), 0o644))
		return
	}
	for i, line := range got {
		MustTrue(t, i < len(want) && line == want[i], "%s:%d: got\n%s", file, i+1, line)
	}
	MustEqual(t, len(got), len(want), "%s: lines", file)
}
