package objectstore

import (
	"strings"
	"testing"
)

func TestBucketsHaveThreeTo63Bytes(t *testing.T) {
	for _, scheme := range []string{"oss", "s3"} {
		for n, right := range map[int]bool{0: false, 2: false, 3: true, 63: true, 64: false} {
			if got := CheckBucket(scheme, strings.Repeat("a", n)) == ""; got != right {
				t.Errorf("%s: a name of %d bytes is right: %v", scheme, n, got)
			}
		}
	}
}
