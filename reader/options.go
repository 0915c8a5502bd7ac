package reader

import (
	"cmp"
	"io"

	"example.com/tsimport/reader/csv"
)

// Sizes in bytes.
const (
	DefaultSplitBytes = 1 << 20  // text of a split, unless a record is longer
	headBytes         = 1 << 20  // examined to detect the format
	MaxRecordBytes    = 64 << 20 // in a longer record a quote is taken to be unclosed, whatever the memory
)

// Options say how sources are read. The zero value detects everything that can be detected.
type Options struct {
	Format     Format      // nil detects it by content and name
	Dialect    csv.Dialect // of CSV; the zero Dialect is csv.Default, with tabs for .tsv and .tab
	Sniff      bool        // detect the dialect from the text
	NoHeader   bool        // the first record of CSV is data, not a header
	Names      []string    // names of columns without a header; default c1, c2, …
	HeaderLine int         // line of the CSV header, or of the first data without one; 0 is the first
	Encoding   string      // of text; empty means UTF-8, or what the byte order mark says
	TrimNames  bool        // drop spaces and tabs around quotes and around header names
	Flatten    bool        // make structs and objects columns a.b.c instead of JSON text
	Named      Named
	Changes    *Changes // for a load of changes; nil for other loads
	SplitBytes int      // 0 means DefaultSplitBytes
	ChainBytes int64    // of a stream between the sums that identify it; 0 means 8 MiB
	Memory     Memory
	// Stream wraps the reader of a stream, which may block forever; nil leaves it unchanged.
	Stream func(io.Reader) io.Reader
}

// FormatName returns the format's name for --format.
func (o *Options) FormatName() string {
	if o.Format == nil {
		return auto
	}
	return o.Format.String()
}

// Named holds the user's names of parts of an input.
type Named struct {
	Known   []string // members of JSON lines, which need not be in the sample
	Missing bool     // a member that a JSON object lacks is absent, not null
	Table   string   // table of a dump, its schema optional; empty for the only one with rows
}

// Memory limits the bytes held of one input at a time; inputs that need more are refused. Zero is for trusted inputs.
type Memory struct {
	RecordBytes int   // text of a record; 0 means MaxRecordBytes
	PageBytes   int64 // of a parser: pages and dictionaries of Parquet, columns of Arrow; 0 limits only pages
	WindowBytes int   // of a decompressor's output; 0 means compress.MaxWindow
	BlockBytes  int   // largest block inflated alone; 0 for no limit. Larger blocks are read as streams
}

func (m Memory) record() int { return cmp.Or(m.RecordBytes, MaxRecordBytes) }
