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
	for _, name := range []string{"lake--use1-az4--x-s3", "lake--op-s3"} {
		if got := CheckBucket("s3", name); !strings.Contains(got, "general purpose bucket") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
