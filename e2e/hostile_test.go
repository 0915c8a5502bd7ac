//go:build e2e

package e2e

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	pzstd "github.com/parquet-go/parquet-go/compress/zstd"
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

func writeMembers(w io.Writer, member string, n int) {
	data, err := base64.StdEncoding.DecodeString(member)
	if err != nil {
		panic(err)
	}
	w.Write(bytes.Repeat(data, n))
}

// writeLie writes a row with a value of n bytes in a page of which the header says that it has other bytes, inflated.
func writeLie(w io.Writer, n, other int) {
	var b bytes.Buffer
	group := parquet.Group{"id": parquet.Leaf(parquet.Int64Type), "v": parquet.Encoded(parquet.String(), &parquet.Plain)}
	p := parquet.NewWriter(&b, parquet.NewSchema("lie", group), parquet.Compression(&pzstd.Codec{}), parquet.SkipPageBounds("v"), parquet.DataPageStatistics(false))
	p.WriteRows([]parquet.Row{{parquet.Int64Value(1).Level(0, 0, 0), parquet.ByteArrayValue(bytes.Repeat([]byte("l"), n)).Level(0, 0, 1)}})
	p.Close()
	// The header's fields 1 and 2: the type, and the length as a varint of Thrift's compact protocol.
	head := func(n int) []byte { return append([]byte{0x15}, varint(n)...) }
	from, to := head(n+4), head(other)
	if len(from) != len(to) || bytes.Count(b.Bytes(), from) == 0 {
		panic(fmt.Sprintf("no length %d in the file", n))
	}
	w.Write(bytes.Replace(b.Bytes(), from, to, 1))
}

func varint(n int) (b []byte) {
	u := uint64(n) << 1
	for ; u >= 0x80; u >>= 7 {
		b = append(b, byte(u)|0x80)
	}
	return append(b, byte(u))
}
