//go:build e2e && linux

package e2e

import (
	"bytes"
	"encoding/base64"
	varint "encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	pzstd "github.com/parquet-go/parquet-go/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Members of compressed files: 8 MiB of the letter x in bzip2, 1 MiB in xz. Both formats allow any number of them.
const (
	bzip2Member = "QlpoOTFBWSZTWZJXf78AQEAAgIBEAAggADDMBSmmAQDYgIB4u5IpwoSEkrv9+A=="
	xzMember    = "/Td6WFoAAAFpIt42AgAhARYAAAB0L+Wj7///ANldADxv+7/+o7Fe5fg/sqomVfhocEFwFQ+N/R5MG4pCtxn0aRhxrmYjiopNL6MN2X+m44wjEVPgWRjFdYrid/i2lH8MasDedElk4ulcU7IE2PdEDKtfDW1G6eXDdoi3llestk3haR1v+0uIEGxCy4g/XACP0E6vJiiUcR89jyThcJ6nI1/sKMuF0ZWYin4qkfIndfcZwAaYTZj92K/VkA/EJVP49ZE2MQWlsO5vwXBNRwzRkRGqrWAdus6xJxhcWYbpZlJYvul2rFnk5VsFCPnH2q38+1Iq9+SVJQAAAAAAMpw7FQAB8QGAgEAAb9Xu3D4wDYsCAAAAAAFZWg=="
	// Heads are "id,v\n1,x\n2,".
	bzip2Head = "QlpoOTFBWSZTWZPAe4gAAARZgAAQAAQwAAQgAUAgADEMCCAzSEYOpL8XckU4UJCTwHuI"
	xzHead    = "/Td6WFoAAAFpIt42AgAhARYAAAB0L+WjAQAKaWQsdgoxLHgKMiwAAI8oO4UAAR8LPWIOepBCmQ0BAAAAAAFZWg=="
	// xzWindow is to be read with a window of 512 MiB.
	xzWindow = "/Td6WFoAAAFpIt42AgAhASIAAACCQKzcAQAIaWQsdgoxLHgKAAAAACUSTaMAAR0Jk2E2ppBCmQ0BAAAAAAFZWg=="
)

// members writes a head and so many members.
func members(head, member string, n int) func(io.Writer) {
	return func(w io.Writer) {
		for _, text := range append([]string{head}, slices.Repeat([]string{member}, n)...) {
			data, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				panic(err)
			}
			w.Write(data)
		}
	}
}

func writeEndlessGzip(w io.Writer) {
	z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
	writeEndless(z, "id,v\n1,x\n2,")
	z.Close()
}

func writeEndlessZstd(w io.Writer) {
	z, _ := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest))
	writeEndless(z, "id,v\n1,x\n2,")
	z.Close()
}

func writeEndlessLZ4(w io.Writer) {
	z := lz4.NewWriter(w)
	z.Apply(lz4.BlockSizeOption(lz4.Block4Mb))
	writeEndless(z, "id,v\n1,x\n2,")
	z.Close()
}

// writeLie writes a row with a value of n bytes in a page of which the header says that it has other bytes, inflated.
func writeLie(w io.Writer, n, other int) {
	var b bytes.Buffer
	group := parquet.Group{"id": parquet.Leaf(parquet.Int64Type), "v": parquet.Encoded(parquet.String(), &parquet.Plain)}
	p := parquet.NewWriter(&b, parquet.NewSchema("lie", group), parquet.Compression(&pzstd.Codec{}), parquet.SkipPageBounds("v"), parquet.DataPageStatistics(false))
	p.WriteRows([]parquet.Row{{parquet.Int64Value(1).Level(0, 0, 0), parquet.ByteArrayValue(bytes.Repeat([]byte("l"), n)).Level(0, 0, 1)}})
	p.Close()
	// The header's fields 1 and 2: the type, and the length as a varint of Thrift's compact protocol.
	head := func(n int) []byte { return varint.AppendVarint([]byte{0x15}, int64(n)) }
	from, to := head(n+4), head(other)
	if len(from) != len(to) || bytes.Count(b.Bytes(), from) == 0 {
		panic(fmt.Sprintf("no length %d in the file", n))
	}
	w.Write(bytes.Replace(b.Bytes(), from, to, 1))
}

// writeValues writes rows with a value of n bytes, which differ in every row or are one entry of a dictionary.
func writeValues(w io.Writer, rows, n int, differ bool) {
	group := parquet.Group{"id": parquet.Leaf(parquet.Int64Type), "v": parquet.Encoded(parquet.String(), &parquet.RLEDictionary)}
	options := []parquet.WriterOption{parquet.Compression(&pzstd.Codec{}), parquet.SkipPageBounds("v"), parquet.DataPageStatistics(false)}
	if differ {
		group["v"], options = parquet.Encoded(parquet.String(), &parquet.Plain), options[1:]
	}
	p := parquet.NewWriter(w, append(options, parquet.NewSchema("values", group))...)
	v := parquet.ByteArrayValue(bytes.Repeat([]byte("a"), n)).Level(0, 0, 1)
	for i := range rows {
		if differ {
			v = parquet.ByteArrayValue([]byte(randomText(n))).Level(0, 0, 1)
		}
		p.WriteRows([]parquet.Row{{parquet.Int64Value(int64(i)).Level(0, 0, 0), v}})
		if differ && i%10 == 9 {
			p.Flush()
		}
	}
	p.Close()
}

// writeList writes one row with a list of equal values.
func writeList(w io.Writer) {
	schema := parquet.NewSchema("list", parquet.Group{
		"id": parquet.Leaf(parquet.Int64Type), "v": parquet.Repeated(parquet.Encoded(parquet.String(), &parquet.RLEDictionary)),
	})
	p := parquet.NewWriter(w, schema, parquet.Compression(&pzstd.Codec{}), parquet.SkipPageBounds("v"), parquet.DataPageStatistics(false))
	row := parquet.Row{parquet.Int64Value(1).Level(0, 0, 0)}
	text := bytes.Repeat([]byte("b"), 2<<20)
	for i := range 60 {
		row = append(row, parquet.ByteArrayValue(text).Level(min(i, 1), 1, 1))
	}
	p.WriteRows([]parquet.Row{row})
	p.Close()
}

// writeWide writes rows of which every one is far larger than the service takes.
func writeWide(w io.Writer) {
	group := parquet.Group{"id": parquet.Leaf(parquet.Int64Type)}
	options := []parquet.WriterOption{parquet.Compression(&pzstd.Codec{}), parquet.DataPageStatistics(false)}
	for c := range 60 {
		name := fmt.Sprintf("v%02d", c)
		group[name] = parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
		options = append(options, parquet.SkipPageBounds(name))
	}
	p := parquet.NewWriter(w, append(options, parquet.NewSchema("wide", group))...)
	v := parquet.ByteArrayValue(bytes.Repeat([]byte("c"), 1<<20))
	for i := range 40 {
		row := parquet.Row{parquet.Int64Value(int64(i)).Level(0, 0, 0)}
		for c := range 60 {
			row = append(row, v.Level(0, 0, c+1))
		}
		p.WriteRows([]parquet.Row{row})
	}
	p.Close()
}

func writeText(w io.Writer, rows, n int, format, header string) {
	io.WriteString(w, header)
	text := randomText(n)
	for i := range rows {
		fmt.Fprintf(w, format, i, text)
	}
}

func writeEndless(w io.Writer, begin string) {
	io.WriteString(w, begin)
	for range 80 {
		io.WriteString(w, strings.Repeat("endless ", 1<<17))
	}
}

func writeColumns(w io.Writer, rows int) {
	io.WriteString(w, "id")
	for i := range 1000 {
		fmt.Fprintf(w, ",a_column_with_a_long_name_%d", i)
	}
	for i := range rows {
		fmt.Fprintf(w, "\n%d%s", i, strings.Repeat(",7", 1000))
	}
	io.WriteString(w, "\n")
}

func randomText(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[rand.IntN(len(letters))]
	}
	return string(b)
}
