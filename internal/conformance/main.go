package conformance

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Main runs a package's tests and ends the process. They make hundreds of small loads, stores and files, so the heap may grow before garbage
// is collected, and temporary folders are in memory where a gigabyte is free there: a load calls fsync about fifteen times, and tests that
// lose no power need not wait for a disk. TMPDIR, if it is set, stays.
func Main(m *testing.M) {
	debug.SetGCPercent(400)
	if folder := inMemory(); folder != "" && os.Getenv("TMPDIR") == "" {
		if err := os.Setenv("TMPDIR", folder); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// Must ends a test, or one drawing of a property, with an error that it does not expect.
func Must(t interface {
	Helper()
	Fatal(args ...any)
}, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ErrorOf is the error of a call that also gives a value.
func ErrorOf[T any](_ T, err error) error { return err }

// Result is what a call gives, until Must takes its value.
type Result[T any] struct {
	value T
	err   error
}

// Try takes what a call gives.
func Try[T any](value T, err error) Result[T] { return Result[T]{value, err} }

// Must is the value. An error ends a test, or one drawing of a property.
func (r Result[T]) Must(t interface {
	Helper()
	Fatal(args ...any)
}) T {
	t.Helper()
	Must(t, r.err)
	return r.value
}

// True reports what does not hold. Format and args say what was found instead.
func True(t interface {
	Helper()
	Errorf(format string, args ...any)
}, holds bool, format string, args ...any) {
	t.Helper()
	if !holds {
		t.Errorf(format, args...)
	}
}

// MustTrue ends a test, or one drawing of a property, with what does not hold.
func MustTrue(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, holds bool, format string, args ...any) {
	t.Helper()
	if !holds {
		t.Fatalf(format, args...)
	}
}

// Equal reports a value that is not the one that is wanted. Format and args say of what.
func Equal[T comparable](t testing.TB, got, want T, format string, args ...any) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %s, want %s", fmt.Sprintf(format, args...), shown(got), shown(want))
	}
}

// MustEqual ends a test, or one drawing of a property, with a value that is not the one that is wanted.
func MustEqual[T comparable](t interface {
	Helper()
	Fatalf(format string, args ...any)
}, got, want T, format string, args ...any) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %s, want %s", fmt.Sprintf(format, args...), shown(got), shown(want))
	}
}

// Same reports values that are not those that are wanted, in their order.
func Same[T comparable](t testing.TB, got, want []T, format string, args ...any) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %s, want %s", fmt.Sprintf(format, args...), shown(got), shown(want))
	}
}

// Is reports an error that is not, and does not wrap, the one that is wanted.
func Is(t testing.TB, err, want error, format string, args ...any) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", fmt.Sprintf(format, args...), err, want)
	}
}

// Contains reports a text without what is wanted in it.
func Contains(t testing.TB, text, want, format string, args ...any) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("%s: %q is not in\n%s", fmt.Sprintf(format, args...), want, text)
	}
}

// Refused reports an error that does not say what is wanted, or that there is none. Every error says "".
func Refused(t testing.TB, err error, want, format string, args ...any) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got %v, want an error with %q", fmt.Sprintf(format, args...), err, want)
	}
}

// shown is a text in quotes if it has one line, and any other value with the names of its fields.
func shown(value any) string {
	if text, ok := value.(string); ok && !strings.Contains(text, "\n") {
		return strconv.Quote(text)
	}
	return fmt.Sprintf("%+v", value)
}
