package verify

import (
	"context"
	"errors"
	"testing"
)

// A comparison whose context ends between two ranges has compared nothing of the others.
func TestAComparisonThatIsStoppedBetweenRangesIsNotComplete(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	why := errors.New("stopped")
	stop(why)
	v := &verifier{cfg: &Config{Workers: 1, Stored: new(Stored)}, tables: []*target{{}}, result: new(Result)}
	if err := v.compareAll(ctx); !errors.Is(err, why) {
		t.Errorf("it ended with %v", err)
	}
}
