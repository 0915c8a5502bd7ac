package md5lanes

import (
	"crypto/md5"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"
)

// forWidths runs a test with each width that the processor has.
func forWidths(t testing.TB, test func(t testing.TB, width int)) {
	has := width
	defer func() { width = has }()
	for _, w := range []int{8, 16} {
		if w <= has {
			width = w
			test(t, w)
		}
	}
}

func check(t testing.TB, texts [][]byte) {
	t.Helper()
	var g Group
	var all []*Hasher
	for _, text := range texts {
		h := g.Hasher()
		h.text = text
		all = append(all, h)
	}
	for n, rest := 0, all; len(rest) > 0; n, rest = n+1, rest[min(width, len(rest)):] { // sumAll hashes few texts one after another
		sumSome(rest[:min(width, len(rest))], n%(mostFew+1))
	}
	some := make([][Size]byte, len(all))
	for i, h := range all {
		some[i], h.sum = h.sum, [Size]byte{}
	}
	sumAll(all)
	for i, h := range all {
		if want := md5.Sum(texts[i]); some[i] != want || h.sum != want {
			t.Fatalf("width %d: text %d of %d, %d bytes: %x and %x, want %x", width, i, len(texts), len(texts[i]), some[i], h.sum, want)
		}
	}
}

func text(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func TestSumsAreThoseOfCryptoMD5(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	forWidths(t, func(t testing.TB, width int) {
		for n := 0; n < 300; n++ { // all places where padding may begin
			check(t, [][]byte{text(r, n), text(r, n+1), text(r, 299-n)})
		}
		for range 200 {
			texts := make([][]byte, 1+r.IntN(Lanes))
			for i := range texts {
				texts[i] = text(r, r.IntN(1<<r.IntN(14)))
			}
			check(t, texts)
		}
		for range 20 { // long ones among short ones, which end alone
			var texts [][]byte
			for range 1 + r.IntN(mostFew+1) {
				texts = append(texts, text(r, 10_000+r.IntN(50_000)))
			}
			for len(texts) < width {
				texts = append(texts, text(r, r.IntN(5_000)))
			}
			r.Shuffle(len(texts), func(i, k int) { texts[i], texts[k] = texts[k], texts[i] })
			check(t, texts)
		}
	})
}

func TestTextsOfManyAtATimeGetTheirOwnSums(t *testing.T) {
	var g Group
	var all errgroup.Group
	for n := range 3 * Lanes {
		all.Go(func() error {
			h := g.Hasher()
			r := rand.New(rand.NewPCG(1, uint64(n)))
			for range 100 {
				text := text(r, r.IntN(3*least))
				if sum := h.Sum(text); sum != md5.Sum(text) {
					return fmt.Errorf("goroutine %d: %d bytes: %x, want %x", n, len(text), sum, md5.Sum(text))
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
	if g.busy || len(g.waiting) > 0 {
		t.Errorf("%d wait at the end", len(g.waiting))
	}
}

// Of those who come while others are hashed, one hashes for all.
func TestTextsAreHashedTogether(t *testing.T) {
	if width == 0 {
		t.Skip("this processor has no lanes")
	}
	g := Group{busy: true} // somebody hashes just now
	var all errgroup.Group
	var hashed [Lanes]int
	for n := range Lanes {
		all.Go(func() error {
			h := g.Hasher()
			text := text(rand.New(rand.NewPCG(2, uint64(n))), 2*least+n)
			if hashed[n] = h.share(text); h.sum != md5.Sum(text) {
				return fmt.Errorf("text %d: wrong", n)
			}
			return nil
		})
	}
	waiting := func() int {
		g.mu.Lock()
		defer g.mu.Unlock()
		return len(g.waiting)
	}
	for waiting() < Lanes {
		runtime.Gosched()
	}
	g.leave()
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
	if slices.Sort(hashed[:]); hashed[Lanes-1] != Lanes || hashed[Lanes-2] != 0 {
		t.Errorf("the goroutines hashed %d texts", hashed)
	}
}

func FuzzSums(f *testing.F) {
	f.Add([]byte("abc"), uint16(1), uint8(3))
	f.Fuzz(func(t *testing.T, seed []byte, cut uint16, n uint8) {
		texts := make([][]byte, 1+int(n)%Lanes)
		for i := range texts { // windows on the same bytes, of different lengths and alignments
			from := min(len(seed), i*int(cut)%(len(seed)+1))
			texts[i] = seed[from:]
		}
		forWidths(t, func(t testing.TB, _ int) { check(t, texts) })
	})
}

func BenchmarkSums(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	texts := make([][]byte, Lanes)
	for i := range texts {
		texts[i] = text(r, 82_800)
	}
	b.Run("crypto/md5", func(b *testing.B) {
		b.SetBytes(82_800)
		for b.Loop() {
			md5.Sum(texts[0])
		}
	})
	has := width
	defer func() { width = has }()
	for _, w := range []int{8, 16} {
		for _, n := range []int{1, 2, 4, 8, 16} {
			if w > has || n > w {
				continue
			}
			width = w
			var g Group
			var all []*Hasher
			for i := range n {
				h := g.Hasher()
				h.text = texts[i]
				all = append(all, h)
			}
			b.Run(fmt.Sprintf("width %d/%d texts", w, n), func(b *testing.B) {
				b.SetBytes(int64(n * 82_800))
				for b.Loop() {
					sumSome(all, 0)
				}
			})
		}
	}
}
