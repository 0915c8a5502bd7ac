package reader

import (
	"cmp"
	"io"

	"example.com/tsimport/reader/csv"
)

// Sizes in bytes.
const (
	DefaultSplitBytes = 1 << 20  // text of a split, unless a record is longer
	headBytes         = 1 << 20  // examined to find out the format
	MaxRecordBytes    = 64 << 20 // a longer record counts as a quote that never closes, with any memory
)

// Options say how sources are read. With the zero value everything is detected that can be.
type Options struct {
	Format     Format      // nil finds it by content and name
	Dialect    csv.Dialect // of CSV; the zero Dialect is csv.Default, in .tsv and .tab with tabs
	Sniff      bool        // find the dialect by the text
	NoHeader   bool        // the first record of CSV is data
	Names      []string    // of columns without a header; default c1, c2, …
	HeaderLine int         // line of the CSV header, or of the first data without one; 0 is the first
	Encoding   string      // of text; empty is UTF-8 or the byte order mark's
	TrimNames  bool        // spaces and tabs around quotes, and around the names in a header, are dropped
	Flatten    bool        // structs and objects become columns a.b.c instead of JSON text
	Named      Named
	Changes    *Changes // of a load of changes; nil for others
	SplitBytes int      // 0 takes DefaultSplitBytes
	ChainBytes int64    // of a stream between sums that identify it; 0 takes 8 MiB
	Memory     Memory
	// Stream wraps the reader of a stream, which may block forever; nil leaves it unchanged.
	Stream func(io.Reader) io.Reader
}

// FormatName is the format's name for --format.
func (o *Options) FormatName() string {
	if o.Format == nil {
		return auto
	}
	return o.Format.String()
}

// Named are the user's names of parts of an input.
type Named struct {
	Known   []string // members of JSON lines: they need not be in the sample
	Missing bool     // a member that an object of JSON lacks is absent, not null
	Table   string   // of a dump, with or without its schema; empty is the only one that has rows
}

// Memory limits the bytes held of one input at a time. Inputs that need more are refused. Zero is for trusted inputs.
type Memory struct {
	RecordBytes int   // text of a record; 0 takes MaxRecordBytes
	PageBytes   int64 // pages and dictionaries of Parquet, columns of Arrow, of one parser; 0 is only a page's
	WindowBytes int   // of a decompressor's output; 0 takes compress.MaxWindow
	BlockBytes  int   // a compressed block inflated alone; 0 takes the largest. Larger ones are streams
}

func (m Memory) record() int { return cmp.Or(m.RecordBytes, MaxRecordBytes) }
