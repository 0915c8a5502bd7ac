package reader

import (
	"cmp"
	"io"

	"example.com/tsimport/reader/csv"
)

// Sizes in bytes.
const (
	DefaultSplitBytes = 1 << 20  // text in a split, unless a record is longer
	headBytes         = 1 << 20  // text examined to detect the format
	MaxRecordBytes    = 64 << 20 // in a longer record a quote is taken to be unclosed, regardless of memory
)

// Options controls how sources are read. The zero value detects formats, but not dialects.
type Options struct {
	Format     Format      // nil means detected by content and name
	Dialect    csv.Dialect // for CSV; the zero Dialect means csv.Default, with tabs for .tsv and .tab, and any line end
	Sniff      bool        // detect the dialect from the text
	NoHeader   bool        // the first record of CSV is data, not a header
	Names      []string    // names of columns without a header; nil means c1, c2, …
	HeaderLine int         // line of the CSV header or, with NoHeader, of the first record; 0 means the first line
	Encoding   string      // of text; "" means by the byte order mark, or UTF-8
	TrimNames  bool        // remove spaces and tabs around quotes and around header names
	Flatten    bool        // make columns a.b.c of structs and objects, instead of JSON text
	Named      Named
	Changes    *Changes // for loads of changes; otherwise nil
	SplitBytes int      // 0 means DefaultSplitBytes
	ChainBytes int64    // bytes of a stream between sums that identify it; 0 means 8 MiB, or 4 KiB for changes
	Memory     Memory
	// Stream wraps the reader of a stream, because reading may block forever. Nil leaves the reader as it is.
	Stream func(io.Reader) io.Reader
}

// FormatName returns the name of the format for --format.
func (o *Options) FormatName() string {
	if o.Format == nil {
		return auto
	}
	return o.Format.String()
}

// Named holds names that the user gave to parts of an input.
type Named struct {
	Known   []string // members of JSON lines, whether in the sample or not
	Missing bool     // a member that an object lacks is absent, not null
	Table   string   // table of a dump, optionally with its schema; "" means the only one with rows
}

// Memory limits the memory for an input; one that needs more is refused. The zero value is for trusted inputs.
type Memory struct {
	RecordBytes int   // text of a record; 0 means MaxRecordBytes
	PageBytes   int64 // memory of a parser: pages and dictionaries of Parquet, columns of Arrow; 0 limits only pages
	WindowBytes int   // window of a decompressor; 0 means compress.MaxWindow
	BlockBytes  int   // largest block to inflate on its own; 0 means 32 MiB. Larger blocks are read as streams
}

func (m Memory) record() int { return cmp.Or(m.RecordBytes, MaxRecordBytes) }

// moreMemory returns advice, which begins with before, about records longer than limit, or "" if memory does not help.
func moreMemory(before string, limit int) string {
	if limit >= MaxRecordBytes {
		return ""
	}
	return before + " give more memory with --memory"
}
