package exactcsv

import (
	"bytes"
	"encoding/csv"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"example.com/tsimport/internal/conformance"
)

func TestFieldsRoundTrip(t *testing.T) {
	const letters = "a\"\r\n, \r\n"
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		var want [][]string
		for range 1 + r.IntN(8) {
			record := []string{"first"}
			for range 2 {
				var field []byte
				for range r.IntN(9) {
					field = append(field, letters[r.IntN(len(letters))])
				}
				record = append(record, string(field))
			}
			want = append(want, record)
		}
		var b bytes.Buffer
		conformance.Must(t, csv.NewWriter(&b).WriteAll(want))
		for _, from := range []io.Reader{bytes.NewReader(b.Bytes()), iotest.OneByteReader(bytes.NewReader(b.Bytes()))} {
			got, err := NewReader(from).ReadAll()
			conformance.MustTrue(t, err == nil && reflect.DeepEqual(got, want), "%d: %q, want %q: %v", seed, got, want, err)
		}
	}
}

func TestLinesMayEndWithCRLF(t *testing.T) {
	got, err := NewReader(strings.NewReader("a,b\r\n\"x\r\ny\",2\r\n3,4")).ReadAll()
	want := [][]string{{"a", "b"}, {"x\r\ny", "2"}, {"3", "4"}}
	conformance.True(t, err == nil && reflect.DeepEqual(got, want), "%q: %v", got, err)
}

func TestReadErrorIsReturned(t *testing.T) {
	_, err := NewReader(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("a,b\nc,d\n")))).ReadAll()
	conformance.Equal(t, err, iotest.ErrTimeout, "the error of the file")
}
