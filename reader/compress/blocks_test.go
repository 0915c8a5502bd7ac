package compress

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"io"
	"runtime/debug"
	"testing"

	"github.com/klauspost/compress/gzip"

	"example.com/tsimport/internal/conformance"
)

var must = conformance.Must

func TestMain(m *testing.M) { conformance.Main(m) }

var everyDamage = flag.Bool("every-damage", false, "flip each bit of a file, not two of each byte in turn")

// bgzfFile makes a BGZF file with blocks of n bytes and the empty block at its end.
func bgzfFile(t testing.TB, data []byte, n int) []byte {
	t.Helper()
	var out []byte
	w := gzip.NewWriter(nil) // one for all blocks: making it costs more than a block
	for done := false; !done; {
		part := data[:min(n, len(data))]
		data = data[len(part):]
		done = len(part) == 0
		var b bytes.Buffer
		w.Reset(&b)
		w.Extra = []byte("XY\x01\x00zBC\x02\x00\x00\x00")
		w.Write(part)
		must(t, w.Close())
		binary.LittleEndian.PutUint16(b.Bytes()[21:], uint16(b.Len()-1))
		out = append(out, b.Bytes()...)
	}
	return out
}

// inPieces decompresses by pieces and by what is left of them.
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

func TestBlocksInflatedOneByOneGiveTheFile(t *testing.T) {
	want := sample(8000)
	frames := func(n int) (parts [][]byte) {
		for rest := want; len(rest) > 0; rest = rest[min(n, len(rest)):] {
			parts = append(parts, rest[:min(n, len(rest))])
		}
		return parts
	}
	for name, c := range map[string]struct {
		kind Kind
		data []byte
	}{
		"BGZF":                             {Gzip, bgzfFile(t, want, 30000)},
		"BGZF of tiny blocks":              {Gzip, bgzfFile(t, want, 100)},
		"BGZF and a gzip member":           {Gzip, append(bgzfFile(t, want[:len(want)/2], 30000), pack(t, Gzip, want[len(want)/2:])...)},
		"BGZF and zeros":                   {Gzip, append(bgzfFile(t, want, 30000), 0, 0, 0)},
		"zstd frames":                      {Zstd, pack(t, Zstd, frames(100000)...)},
		"small zstd frames":                {Zstd, pack(t, Zstd, frames(1000)...)},
		"a skippable frame in front":       {Zstd, append([]byte("\x50\x2a\x4d\x18\x03\x00\x00\x00abc"), pack(t, Zstd, frames(100000)...)...)},
		"a skippable frame at the end":     {Zstd, append(pack(t, Zstd, frames(100000)...), "\x50\x2a\x4d\x18\x03\x00\x00\x00abc"...)},
		"a zstd frame without independent": {Zstd, append(pack(t, Zstd, want[:1000]), pack(t, Zstd, want[1000:])...)},
	} {
		if !Independent(c.kind, c.data) {
			t.Errorf("%s: not seen as independent", name)
		}
		got, err := inPieces(c.kind, c.data)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes of %d: %v", name, len(got), len(want), err)
		}
	}
	if Independent(Gzip, pack(t, Gzip, want)) || Independent(Zstd, pack(t, Zstd, want)) {
		t.Error("one member is seen as independent blocks")
	}
}

func TestBlocksCutOrDamagedAnywhereAreAnErrorOrTheFile(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // thousands of short-lived decoders in a heap of a few megabytes
	want := sample(60)
	for _, c := range []struct {
		kind Kind
		data []byte
	}{{Gzip, bgzfFile(t, want, 700)}, {Zstd, pack(t, Zstd, want[:900], want[900:])}} {
		for n := range len(c.data) {
			wholeOut, wholeErr := decompress(c.kind, c.data[:n])
			out, err := inPieces(c.kind, c.data[:n])
			if (err == nil) != (wholeErr == nil) || !bytes.Equal(out, wholeOut) {
				t.Errorf("%v cut at %d: %d bytes, %v; as one %d bytes, %v", c.kind, n, len(out), err, len(wholeOut), wholeErr)
			}
			for bit := range 8 {
				if bit%4 != n%4 && !*everyDamage { // make fuzz
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

func TestRealFilesOfBlocksInflateAsOne(t *testing.T) {
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
		if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
			t.Errorf("%s: %v; as one: %v", f.Path, err, wantErr)
		}
		if Independent(k, data) {
			blocks++
		}
	}
	if blocks == 0 {
		t.Error("no file had blocks that are inflated alone")
	}
}
