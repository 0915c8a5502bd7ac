package compress

import (
	"bytes"
	"compress/bzip2"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/ulikunitz/xz"

	"example.com/tsimport/internal/conformance"
)

// pack returns a file of kind k with one member per part.
func pack(t testing.TB, k Kind, parts ...[]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, part := range parts {
		var w io.WriteCloser
		var err error
		switch k {
		case Gzip:
			w = gzip.NewWriter(&out)
		case Zstd:
			w, err = zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true))
		case Xz:
			w, err = xz.WriterConfig{DictCap: window(part)}.NewWriter(&out)
		case Lz4:
			z := lz4.NewWriter(&out)
			if window(part) == smallWindow {
				err = z.Apply(lz4.BlockSizeOption(lz4.Block64Kb))
			}
			w = z
		case Snappy:
			w = s2.NewWriter(&out, s2.WriterSnappyCompat(), s2.WriterConcurrency(1))
		case S2:
			w = s2.NewWriter(&out, s2.WriterConcurrency(1))
		}
		conformance.Must(t, err)
		if k == Zstd && len(part) == 0 {
			out.WriteString("\x28\xb5\x2f\xfd\x00\x00\x01\x00\x00") // the encoder writes no frame for an empty part
			continue
		}
		conformance.Must(t, conformance.ErrorOf(w.Write(part)))
		conformance.Must(t, w.Close())
	}
	return out.Bytes()
}

// smallWindow is the window for short texts: thousands of damaged files each need a decompressor with a window.
const smallWindow = 64 << 10

// window returns the window for compressing a part: the programs' default or, for a short text, smallWindow.
func window(part []byte) int {
	if len(part) < smallWindow {
		return smallWindow
	}
	return 8 << 20
}

// sample returns n lines of compressible text.
func sample(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "%d,name-%d,%x\n", i, i*i%977, uint64(i)*0x9E3779B97F4A7C15)
	}
	return b.Bytes()
}

var made = []Kind{Gzip, Zstd, Xz, Lz4, Snappy, S2}

func TestCompressedFilesRoundTrip(t *testing.T) {
	for _, k := range made {
		parts := [][]byte{sample(3000), nil, sample(10), sample(1)}
		if k == Snappy || k == S2 {
			parts = [][]byte{sample(3000), sample(10)}
		}
		want := bytes.Join(parts, nil)
		data := pack(t, k, parts...)
		conformance.Equal(t, Detect(data[:min(len(data), HeadBytes)], len(data) <= HeadBytes), k, "%v", k)
		r := conformance.Try(NewLimitedReader(k, iotest.OneByteReader(bytes.NewReader(data)), "file", 0)).Must(t)
		got, err := io.ReadAll(iotest.HalfReader(r))
		conformance.True(t, err == nil && bytes.Equal(got, want), "%v: %d bytes of %d: %v", k, len(got), len(want), err)
		conformance.Must(t, r.Close())
	}
}

// TestTruncatedFilesAreErrors cuts files at every byte.
func TestTruncatedFilesAreErrors(t *testing.T) {
	for _, k := range made {
		parts := [][]byte{sample(20), sample(5)}
		want := bytes.Join(parts, nil)
		data := pack(t, k, parts...)
		ends := map[int]bool{len(data): true, len(pack(t, k, parts[0])): true}
		for n := range len(data) {
			out, err := decompress(k, data[:n])
			conformance.MustEqual(t, bytes.HasPrefix(want, out), true, "%v cut at %d: wrong bytes", k, n)
			conformance.True(t, err != nil || ends[n] || (k == Snappy || k == S2) && snappyEnd(data[:n]),
				"%v cut at %d of %d: no error, %d bytes", k, n, len(data), len(out))
			conformance.True(t, err == nil || strings.Contains(err.Error(), "decompress file: "), "%v cut at %d: %v", k, n, err)
		}
	}
}

// snappyEnd reports whether data ends after a complete chunk, which is a valid end: the format has no end mark.
func snappyEnd(data []byte) bool {
	for len(data) >= 4 {
		n := 4 + int(data[1]) + int(data[2])<<8 + int(data[3])<<16
		if n > len(data) {
			return false
		}
		data = data[n:]
	}
	return len(data) == 0
}

func TestTruncatedBzip2IsError(t *testing.T) {
	data := conformance.Read(t, conformance.Part(t), "csv/compressed-commons/multiple.bz2")
	for n := range len(data) {
		_, err := decompress(Bzip2, data[:n])
		whole, wholeErr := io.ReadAll(bzip2.NewReader(bytes.NewReader(data[:n])))
		conformance.True(t, err != nil || wholeErr == nil && len(whole) != 0, "cut at %d: no error", n)
	}
	conformance.Refused(t, conformance.ErrorOf(decompress(Bzip2, append(data, 'x'))), "", "a byte after the end")
}

func TestFlippedBitsAreNoticed(t *testing.T) {
	for _, k := range []Kind{Gzip, Zstd, Xz, Lz4, Snappy} {
		want := sample(8)
		data := pack(t, k, want)
		for i := range data {
			for bit := range 8 {
				if bit%4 != i%4 && !*everyDamage { // set by make fuzz
					continue
				}
				data[i] ^= 1 << bit
				out, err := decompress(k, data)
				conformance.True(t, err != nil || bytes.Equal(out, want) || len(out) == 0, "%v: bit %d of byte %d", k, bit, i)
				data[i] ^= 1 << bit
			}
		}
	}
}

func TestTrailingGarbageIsErrorAfterAllBytes(t *testing.T) {
	want := sample(100)
	for _, k := range made {
		data := pack(t, k, want)
		for _, garbage := range []string{"x", "garbage", "\x1f", "\x1fxxx", "BZh9", strings.Repeat("g", 300)} {
			out, err := decompress(k, append(bytes.Clone(data), garbage...))
			conformance.True(t, err != nil && bytes.Equal(out, want), "%v, %.9q: %d, %v", k, garbage, len(out), err)
		}
	}
	out, err := decompress(Gzip, append(pack(t, Gzip, want), make([]byte, 1000)...))
	conformance.True(t, err == nil && bytes.Equal(out, want), "zeros after gzip: %v", err)
	conformance.Is(t, conformance.ErrorOf(decompress(Gzip, append(pack(t, Gzip, want), 0, 0, 'x'))), ErrTrailing, "\\0x")
}

func TestErrorsNameFileKindAndPosition(t *testing.T) {
	data := pack(t, Gzip, sample(1000))
	_, err := decompress(Gzip, data[:500])
	conformance.Is(t, err, io.ErrUnexpectedEOF, "cut short")
	conformance.Equal(t, fmt.Sprint(err), "decompress file: gzip data is cut short at byte 500: unexpected EOF", "error")
	broken := errors.New("connection reset")
	r, _ := NewLimitedReader(Zstd, io.MultiReader(bytes.NewReader(pack(t, Zstd, sample(1000))[:100]),
		iotest.ErrReader(broken)), "a.zst", 0)
	_, err = io.ReadAll(r)
	conformance.True(t, errors.Is(err, broken) && strings.HasPrefix(err.Error(), "read a.zst at byte 100: "), "%v", err)
	for _, k := range made {
		conformance.Refused(t, conformance.ErrorOf(decompress(k, nil)), "", "an empty %v file is accepted", k)
	}
	conformance.Refused(t, conformance.ErrorOf(NewLimitedReader(Zip, nil, "a.zip", 0)), "zip is not supported", "zip")
}

func TestTextIsNotDetectedAsCompressed(t *testing.T) {
	for _, text := range []string{"", "a,b\n", "BZh9,b\n", "LZIPcode,x\n", "]\x00a\x00", "PK,1\n", "\xc4\xe3\xba\xc3,1\n",
		"7z,rar\n", strings.Repeat("\xd6\xd0\xb9\xfa,\xc8\xcb\xc3\xf1\n", 200),
		"\x80\x08<hello, world: a,b,c,d,e,f\n" + strings.Repeat("x,y\n", 50)} {
		conformance.Equal(t, Detect([]byte(text), true), None, "%.12q", text)
	}
	raw := s2.EncodeSnappy(nil, sample(2000))
	conformance.Equal(t, Detect(raw[:HeadBytes], false), SnappyRaw, "raw snappy")
	skippable := binary.LittleEndian.AppendUint32(nil, skippableMagic+3)
	skippable = append(skippable, 2, 0, 0, 0, 'x', 'y')
	for _, k := range []Kind{Zstd, Lz4} {
		data := append(bytes.Clone(skippable), pack(t, k, sample(3))...)
		conformance.Equal(t, Detect(data, true), k, "%v after a skippable frame", k)
		out, err := decompress(k, data)
		conformance.True(t, err == nil && bytes.Equal(out, sample(3)), "%v after a skippable frame: %v", k, err)
	}
}

func FuzzDecompress(f *testing.F) {
	for _, k := range made {
		f.Add(uint8(k), pack(f, k, sample(20)))
	}
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		for _, k := range []Kind{Kind(kind % uint8(Zip)), Detect(data, true)} {
			if k == None || !k.Supported() {
				continue
			}
			r := conformance.Try(NewLimitedReader(k, bytes.NewReader(data), "file", 0)).Must(t)
			const enough = 16 << 20 // a bomb is valid, so only part of its output is kept
			n, err := io.Copy(io.Discard, io.LimitReader(r, enough))
			r.Close()
			if Independent(k, data) && n < enough {
				whole, wholeErr := decompress(k, data)
				pieces, piecesErr := inPieces(k, data)
				// gzip may not look at a BGZF size field, but different bytes must never be accepted.
				conformance.MustTrue(t, piecesErr != nil || wholeErr == nil && bytes.Equal(whole, pieces),
					"%v: in pieces %d bytes, as one %d, %v", k, len(pieces), len(whole), wholeErr)
			}
			_ = err
		}
	})
}

func jsonLines(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "{\"id\":%d,\"text\":\"%x\"}\n", i, uint64(i)*0x9E3779B97F4A7C15)
	}
	return b.Bytes()
}

func TestDamagedRawSnappyIsRefused(t *testing.T) {
	want := jsonLines(40)
	data := s2.EncodeSnappy(nil, want)
	for n := 0; n < len(data); n += 1 + n/100 {
		got, err := decompress(SnappyRaw, data[:n])
		conformance.MustTrue(t, errors.Is(err, io.ErrUnexpectedEOF) && bytes.HasPrefix(want, got), "%d bytes: %v", n, err)
	}
	conformance.Is(t, conformance.ErrorOf(decompress(SnappyRaw, append(bytes.Clone(data), 0))), ErrTrailing, "a byte more")
	for _, bad := range []string{"\x05\x01\x00", "\x04\x00a\x05\x02", "\x03\x0cabcd", "\xff\xff\xff\xff\xff\x01"} {
		got, err := decompress(SnappyRaw, []byte(bad))
		conformance.True(t, err != nil, "%q gives %q", bad, got)
	}
}

func TestSnappyCopyBeyondWindowIsRefused(t *testing.T) {
	src := newSource(bytes.NewReader(s2.EncodeSnappy(nil, bytes.Repeat(jsonLines(2000), 3))), 0)
	src.limit(1 << 10)
	_, err := io.Copy(io.Discard, &reader{kind: SnappyRaw, name: "file", src: src})
	conformance.Refused(t, err, "reaches back", "error")
}

// deviations explains each file for which this package and the manifest disagree.
var deviations = map[string]string{
	"csv/xz-utils/files/bad-1-v1-magic-2.lz": "the damaged magic is what makes it lzip; it is not recognised and is " +
		"read as text, which its bytes are not",
}

// references returns the digests of the files as decompressed by gzip, bzip2, xz, lz4 and zstd (Debian 12), read from
// testdata/reference.
func references(t testing.TB) map[string]string {
	raw := conformance.Read(t, "testdata", "reference")
	sums := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		sum, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		sums[path] = sum
	}
	return sums
}

func decompress(k Kind, data []byte) ([]byte, error) {
	r, err := NewLimitedReader(k, bytes.NewReader(data), "file", 0)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

func TestCompressedFilesAgreeWithManifest(t *testing.T) {
	conformance.Run(t, everyCompressedFile)
}

func everyCompressedFile(t *testing.T, dir string) {
	reference := references(t)
	counts := map[string]int{}
	for _, f := range conformance.Files(t, dir) {
		if f.Compression == "" || f.Compression == "none" || f.Format == "parquet" {
			continue
		}
		data := conformance.Read(t, dir, f.Path)
		k := Detect(data[:min(len(data), HeadBytes)], len(data) <= HeadBytes)
		out, err := decompress(k, data)
		verdict := "ok"
		if err != nil {
			verdict = "error"
		}
		_, deviates := deviations[f.Path]
		if k == Lzma || k == Lzip {
			deviates = f.Expected == "ok" // recognised only to be refused
		}
		counts[f.Expected+"→"+verdict]++
		conformance.True(t, f.Expected == "any" || (verdict != f.Expected) == deviates, "%s: %s: %v", f.Path, verdict, err)
		if sum, ok := reference[f.Path]; ok && err == nil && sum != fmt.Sprintf("%x", sha256.Sum256(out))[:16] {
			t.Errorf("%s: bytes differ from what the reference tool gives", f.Path)
		}
		if f.DerivedFrom != "" {
			twin := conformance.Read(t, dir, f.DerivedFrom)
			conformance.True(t, err != nil || bytes.Equal(out, twin), "%s: bytes differ from the twin", f.Path)
			conformance.True(t, err == nil || strings.Contains(f.Path, "badc") || bytes.HasPrefix(twin, out),
				"%s: bytes before the error are no prefix of the twin", f.Path)
		}
	}
	conformance.True(t, counts["ok→ok"] >= 50 && counts["error→error"] >= 30, "hardly anything was read: %v", counts)
}

func TestMain(m *testing.M) { conformance.Main(m) }

var everyDamage = flag.Bool("every-damage", false, "flip each bit of a file, not two of each byte in turn")

// bgzfFile returns a BGZF file with blocks of n bytes and an empty last block.
func bgzfFile(t testing.TB, data []byte, n int) []byte {
	t.Helper()
	var out []byte
	w := gzip.NewWriter(nil) // used for all blocks: creating it costs more than writing a block
	for done := false; !done; {
		part := data[:min(n, len(data))]
		data = data[len(part):]
		done = len(part) == 0
		var b bytes.Buffer
		w.Reset(&b)
		w.Extra = []byte("XY\x01\x00zBC\x02\x00\x00\x00")
		w.Write(part)
		conformance.Must(t, w.Close())
		binary.LittleEndian.PutUint16(b.Bytes()[21:], uint16(b.Len()-1))
		out = append(out, b.Bytes()...)
	}
	return out
}

// inPieces decompresses a file in pieces, and the remainder that cannot be cut with Rest.
func inPieces(k Kind, data []byte) ([]byte, error) {
	c := NewBlockCutter(k, bytes.NewReader(data), "file")
	var f Inflater
	defer f.Close()
	var out []byte
	for {
		p, err := c.Next()
		switch {
		case err == io.EOF:
			return out, nil
		case errors.Is(err, ErrDependent):
			r := c.Rest()
			defer r.Close()
			rest, err := io.ReadAll(r)
			return append(out, rest...), err
		case err != nil:
			return out, err
		}
		n := len(out)
		if out, err = f.Inflate(out, p); err != nil {
			return out, err
		}
		if len(out)-n > p.Bound {
			return out, errors.New("a piece is larger than its bound")
		}
	}
}

func TestDamagedBlocksFailOrGiveSameFile(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // many short-lived decoders in a small heap
	want := sample(60)
	for _, c := range []struct {
		kind Kind
		data []byte
	}{{Gzip, bgzfFile(t, want, 700)}, {Zstd, pack(t, Zstd, want[:900], want[900:])}} {
		for n := range len(c.data) {
			wholeOut, wholeErr := decompress(c.kind, c.data[:n])
			out, err := inPieces(c.kind, c.data[:n])
			conformance.True(t, (err == nil) == (wholeErr == nil) && bytes.Equal(out, wholeOut),
				"%v cut at %d: %d bytes, %v; as one %d bytes, %v", c.kind, n, len(out), err, len(wholeOut), wholeErr)
			for bit := range 8 {
				if bit%4 != n%4 && !*everyDamage { // set by make fuzz
					continue
				}
				damaged := bytes.Clone(c.data)
				damaged[n] ^= 1 << bit
				out, err := inPieces(c.kind, damaged)
				if whole, wholeErr := decompress(c.kind, damaged); err == nil && (wholeErr != nil || !bytes.Equal(out, whole)) {
					t.Errorf("%v damaged at %d: %d bytes; as one %d bytes, %v", c.kind, n, len(out), len(whole), wholeErr)
				}
			}
		}
	}
}

func TestRealBlockFilesGiveSameTextInPieces(t *testing.T) {
	conformance.Run(t, filesOfBlocksInflateAsOne)
}

func filesOfBlocksInflateAsOne(t *testing.T, dir string) {
	blocks := 0
	for _, f := range conformance.Files(t, dir) {
		if f.Format == "parquet" || f.Compression != "gzip" && f.Compression != "zstd" {
			continue
		}
		data := conformance.Read(t, dir, f.Path)
		k := Detect(data, true)
		want, wantErr := decompress(k, data)
		got, err := inPieces(k, data)
		conformance.True(t, (err == nil) == (wantErr == nil) && (err != nil || bytes.Equal(got, want)), "%s: %v", f.Path, err)
		if Independent(k, data) {
			blocks++
		}
	}
	conformance.True(t, blocks != 0, "no file had blocks that are inflated alone")
}
