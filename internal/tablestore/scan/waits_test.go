package scan

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// neverRead is a service that refuses to be read.
type neverRead struct{}

func (neverRead) GetRange(*tablestore.GetRangeRequest) (*tablestore.GetRangeResponse, error) {
	return nil, &tablestore.OtsError{Code: "OTSNotEnoughCapacityUnit", Message: "not enough", HttpStatusCode: 403}
}

// TestReadingThatIsRefusedIsToldAndGivenUpInTime reads several ranges at a time of a service that refuses all of them.
func TestReadingThatIsRefusedIsToldAndGivenUpInTime(t *testing.T) {
	for _, c := range []struct {
		retryFor time.Duration
		told     int
	}{
		{time.Second, 0}, {3 * time.Second, 1}, {20 * time.Second, 1}, {40 * time.Second, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			told := 0
			waits := NewWaits(func(why string, most time.Duration) {
				told++
				if why == "" || most != c.retryFor {
					t.Errorf("told %q, for %v at most", why, most)
				}
			})
			began := time.Now()
			ended := make(chan error)
			const ranges = 4
			for range ranges {
				go func() {
					_, err := NewPager(neverRead{}, "t", key, Options{RetryFor: c.retryFor, Manner: Manner{Waits: waits}}).Next(t.Context())
					ended <- err
				}()
			}
			for range ranges {
				if err := <-ended; err == nil {
					t.Error("a page was read")
				}
			}
			if took := time.Since(began); took < c.retryFor || took > c.retryFor*3/2+2*time.Second {
				t.Errorf("%v: gave up after %v", c.retryFor, took)
			}
			if told != c.told {
				t.Errorf("%v: told %d times, want %d", c.retryFor, told, c.told)
			}
		})
	}
}

func TestReadingThatIsStoppedSaysWhatItWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("stopped by the user")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(5*time.Second, func() { cancel(why) })
		_, err := NewPager(neverRead{}, "t", key, Options{}).Next(ctx)
		if stopped := new(StoppedError); !errors.As(err, &stopped) || !errors.Is(err, why) || stopped.Last == nil {
			t.Errorf("%v", err)
		}
	})
}
