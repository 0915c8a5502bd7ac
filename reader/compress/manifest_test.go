package compress

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tsimport/internal/conformance"
)

// deviations are the files on which this package and the manifest differ, and why.
var deviations = map[string]string{
	"csv/xz-utils/files/bad-1-v1-magic-2.lz": "the damaged magic is what makes it lzip; it is not recognised and is read as text, which its bytes are not",
}

// references returns the digests of what gzip, bzip2, xz, lz4 and zstd (Debian 12) make of the files: testdata/reference.
func references(t testing.TB) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "reference"))
	must(t, err)
	sums := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		sum, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		sums[path] = sum
	}
	return sums
}

func decompress(k Kind, data []byte) ([]byte, error) {
	r, err := NewReader(k, bytes.NewReader(data), "file")
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

func TestEveryCompressedFileOfTheManifestIsReadOrRefusedAsItSays(t *testing.T) {
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
			deviates = f.Expected == "ok" // known by name only
		}
		counts[f.Expected+"→"+verdict]++
		if f.Expected != "any" && (verdict != f.Expected) != deviates {
			t.Errorf("%s: %s as %v, manifest says %s: %v", f.Path, verdict, k, f.Expected, err)
		}
		if sum, ok := reference[f.Path]; ok && err == nil && sum != fmt.Sprintf("%x", sha256.Sum256(out))[:16] {
			t.Errorf("%s: bytes differ from what the reference tool gives", f.Path)
		}
		if f.DerivedFrom != "" {
			twin := conformance.Read(t, dir, f.DerivedFrom)
			if err == nil && !bytes.Equal(out, twin) {
				t.Errorf("%s: bytes differ from the twin", f.Path)
			}
			if err != nil && !strings.Contains(f.Path, "badc") && !bytes.HasPrefix(twin, out) {
				t.Errorf("%s: bytes before the error are no prefix of the twin", f.Path)
			}
		}
	}
	if counts["ok→ok"] < 50 || counts["error→error"] < 30 {
		t.Errorf("hardly anything was read: %v", counts)
	}
}
