package compress

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/s2"
)

func jsonLines(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "{\"id\":%d,\"text\":\"%x\"}\n", i, uint64(i)*0x9E3779B97F4A7C15)
	}
	return b.Bytes()
}

func TestWholeFileSnappyIsReadAndKnown(t *testing.T) {
	for _, n := range []int{1, 2, 30, 5000, 30000} {
		want := jsonLines(n)
		for name, data := range map[string][]byte{"fast": s2.EncodeSnappy(nil, want), "best": s2.EncodeSnappyBest(nil, want)} {
			head := data[:min(len(data), 1<<20)]
			if k := Detect(head, len(head) == len(data)); k != SnappyRaw {
				t.Errorf("%d lines, %s: taken for %v", n, name, k)
			}
			r, err := NewReader(SnappyRaw, bytes.NewReader(data), "file")
			must(t, err)
			if got, err := io.ReadAll(iotest.HalfReader(r)); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d lines, %s: %d bytes of %d, %v", n, name, len(got), len(want), err)
			}
		}
	}
}

func TestDamagedWholeFileSnappyIsRefused(t *testing.T) {
	want := jsonLines(40)
	data := s2.EncodeSnappy(nil, want)
	for n := 0; n < len(data); n += 1 + n/100 {
		got, err := decompress(SnappyRaw, data[:n])
		if !errors.Is(err, io.ErrUnexpectedEOF) || !bytes.HasPrefix(want, got) {
			t.Fatalf("%d of %d bytes: %v", n, len(data), err)
		}
	}
	if _, err := decompress(SnappyRaw, append(bytes.Clone(data), 0)); !errors.Is(err, ErrTrailing) {
		t.Errorf("with a byte more: %v", err)
	}
	for _, bad := range []string{"\x05\x01\x00", "\x04\x00a\x05\x02", "\x03\x0cabcd", "\xff\xff\xff\xff\xff\x01"} {
		if got, err := decompress(SnappyRaw, []byte(bad)); err == nil {
			t.Errorf("%q gives %q", bad, got)
		}
	}
}

func TestACopyOfSnappyThatReachesTooFarIsRefused(t *testing.T) {
	src := newSource(bytes.NewReader(s2.EncodeSnappy(nil, bytes.Repeat(jsonLines(2000), 3))), 0)
	src.limit(1 << 10)
	_, err := io.Copy(io.Discard, newReader(SnappyRaw, src, "file", false))
	if err == nil || !strings.Contains(err.Error(), "reaches back") {
		t.Errorf("%v", err)
	}
}
