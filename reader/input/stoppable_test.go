package input

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
)

func TestAStoppableReaderGivesWhatIsThere(t *testing.T) {
	text := strings.Repeat("0123456789", 100_000)
	got, err := io.ReadAll(Stoppable(t.Context(), iotest.HalfReader(strings.NewReader(text))))
	if err != nil || string(got) != text {
		t.Errorf("%d of %d bytes, %v", len(got), len(text), err)
	}
	broken := errors.New("broken")
	r := Stoppable(t.Context(), iotest.DataErrReader(io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(broken))))
	if got, err := io.ReadAll(r); !errors.Is(err, broken) || string(got) != "abc" {
		t.Errorf("%q, %v; want what comes before the error, then the error", got, err)
	}
}

func TestAReadThatBlocksEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := errors.New("stopped by the user")
		from, to := io.Pipe()
		defer to.Close() // lets the read go that is left behind
		r := Stoppable(ctx, from)
		ended := make(chan error)
		go func() {
			_, err := r.Read(make([]byte, 1))
			ended <- err
		}()
		synctest.Wait()
		select {
		case err := <-ended:
			t.Fatalf("the read ended by itself: %v", err)
		default:
		}
		cancel(stopped)
		if err := <-ended; !errors.Is(err, stopped) {
			t.Errorf("%v, want the cause", err)
		}
		if _, err := r.Read(make([]byte, 1)); !errors.Is(err, stopped) {
			t.Errorf("the next read: %v, want the cause again", err)
		}
	})
}
