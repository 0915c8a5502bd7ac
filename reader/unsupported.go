package reader

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/zlib"

	"example.com/tsimport/reader/charset"
	"example.com/tsimport/reader/compress"
)

// notRows is a kind of file without readable rows. As CSV, some such files would load as garbage.
type notRows struct {
	magic string                 // first bytes of the file; may be ""
	is    func(head []byte) bool // another condition; may be nil
	what  string
	way   string // advice for the user, in which FILE stands for the file's name
}

const (
	toParquet   = "convert it to Parquet, for example with pyarrow: "
	notATable   = "it has no rows; export its table to CSV first"
	dialectsWay = "have the program write rows instead, as "
)

var kindsWithoutRows = []notRows{
	{magic: "SQLite format 3\x00", what: "a SQLite database",
		way: "load a table of it: tsimport load 'sqlite:FILE?table=NAME'; tsimport tables sqlite:FILE lists them"},
	{magic: "Obj\x01", what: "an Avro file", way: "convert it: avro-tools tojson FILE | tsimport load - --format jsonl"},
	{magic: "ORC", is: isBinary, what: "an ORC file", way: toParquet +
		`import pyarrow.orc as o, pyarrow.parquet as p; p.write_table(o.read_table("FILE"), "FILE.parquet")`},
	{magic: "FEA1", is: isBinary, what: "a Feather file of version 1", way: toParquet +
		`import pyarrow.feather as f, pyarrow.parquet as p; p.write_table(f.read_table("FILE"), "FILE.parquet")`},
	{magic: "PARE", is: isBinary, what: "encrypted Parquet", way: "write it unencrypted: tsimport has no keys for it"},
	{magic: "PAR1", is: isBinary, what: "Parquet inside a compressed file", way: "unpack it: Parquet needs random access"},
	{is: isDuckDB, what: "a DuckDB database",
		way: "load a table of it: duckdb FILE -csv -c 'SELECT * FROM name' | tsimport load -"},
	{is: isBSON, what: "BSON", way: "convert it: bsondump FILE | tsimport load - --format jsonl"},
	{magic: "%PDF-", what: "a PDF document", way: notATable},
	{magic: "\x89PNG\r\n\x1a\n", what: "a PNG picture", way: notATable},
	{magic: "\xff\xd8\xff", what: "a JPEG picture", way: notATable},
	{magic: "GIF8", is: isBinary, what: "a GIF picture", way: notATable},
	{magic: "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", what: "an Office document of the old format, such as an .xls workbook",
		way: "save the sheet as CSV: soffice --headless --convert-to csv FILE"},
	{magic: "PK\x03\x04", is: isWorkbook, what: "an .xlsx workbook or another Office document",
		way: "save the sheet as CSV UTF-8, or: soffice --headless --convert-to csv FILE"},
	{magic: "\x78", is: isZlib, what: "zlib data (deflate)",
		way: `decompress it: python3 -c 'import sys,zlib; sys.stdout.buffer.write(zlib.decompress(sys.stdin.buffer.read()))' <FILE | tsimport load -`},
	{is: isHadoopBlocks, what: "snappy or LZ4 in the block framing of Hadoop",
		way: "decompress it: hadoop fs -text FILE | tsimport load -"},
	{magic: "\x1e", is: func(h []byte) bool { return len(h) > 1 && (h[1] == '{' || h[1] == '[') },
		what: "a JSON text sequence", way: `take out its separators: tr -d '\036' <FILE | tsimport load - --format jsonl`},
	{magic: "\x89HDF\r\n\x1a\n", what: "an HDF5 file", way: toParquet +
		`import pandas; pandas.read_hdf("FILE").to_parquet("FILE.parquet")`},
	{magic: "\x93NUMPY", what: "a NumPy array", way: toParquet +
		`import numpy, pandas; pandas.DataFrame(numpy.load("FILE")).to_parquet("FILE.parquet")`},
	{magic: "\x7fELF", what: "a program", way: notATable},
	{magic: "PGDMP", what: "a pg_dump archive", way: "convert it to text: pg_restore -f dump.sql FILE, and load that"},
	{magic: "toc.dat\x00", is: func(h []byte) bool { return compress.Detect(h, false) == compress.Tar },
		what: "a pg_dump archive (tar)", way: "convert it to text: pg_restore -f dump.sql FILE, and load that"},
	{magic: "PRAGMA foreign_keys=OFF;\n", what: "a dump of SQL statements", way: dialectsWay +
		"sqlite3 -quote -header DATABASE 'SELECT * FROM name' | tsimport load - --dialect sqlite-quote"},
	{magic: "$ion_1_0 ", what: "Amazon Ion", way: "export the table as DynamoDB JSON, or convert it to JSON lines"},
	{magic: "<?xml", what: "XML", way: "convert it to CSV or JSON lines first"},
	{is: htmlPage.Match, what: "a web page", way: "read it: the server may have sent an error instead of the file"},
}

var htmlPage = regexp.MustCompile(`(?i)^\s*<(!doctype html|html)[\s>]`)

// refuse returns why the text has no rows, or nil if the user named a format. inner means that it was compressed.
func (s *File) refuse(head []byte, inner bool) error {
	if s.o.Format != nil {
		return nil
	}
	wide := s.isWide(head)
	for _, k := range kindsWithoutRows {
		if k.magic == "" && wide { // half of its bytes may be NULs, as in small numbers
			continue
		}
		if !strings.HasPrefix(string(head[:min(len(head), len(k.magic))]), k.magic) || k.is != nil && !k.is(head) {
			continue
		}
		return s.refusal(k.what, k.way, inner)
	}
	if _, _, marked := charset.DetectBOM(head); inner && !marked {
		if kind := compress.Detect(head, len(head) < headBytes); kind != compress.None {
			return s.refusal(kind.String(), cmp.Or(kind.Way(), "it was compressed twice: decompress it once"), true)
		}
	}
	return nil
}

func (s *File) refusal(what, way string, inner bool) error {
	if inner && !strings.HasPrefix(what, "Parquet inside") {
		what += fmt.Sprintf(" inside %s", s.Compression)
		if strings.Contains(way, "FILE") {
			way = "decompress it first; then " + way
		}
	}
	return fmt.Errorf("read %s: the file is %s, which cannot be loaded; %s", s.Name, what,
		strings.ReplaceAll(way, "FILE", s.shellName()))
}

// shellName returns the name of the source for use in a shell command, or FILE if it would need quotes.
func (s *File) shellName() string {
	if s.Name == "-" || strings.ContainsAny(s.Name, " '\"$`\\|&;<>()*?[]#~%\t\n!{}") {
		return "FILE"
	}
	return s.Name
}

// refuseBinary returns why an input is not text: it has many NULs, as binary data or UTF-16 without a BOM has.
func (s *File) refuseBinary(head []byte) error {
	if s.o.Format != nil {
		return nil
	}
	if extension := Extension(s.Name); (extension == ".parquet" || extension == ".parq") && len(head) > 0 {
		return fmt.Errorf("read %s: its name says Parquet, but it does not begin with PAR1: it is damaged or something "+
			"else; give --format csv or jsonl if it is that", s.Name)
	}
	d := s.o.Dialect
	if bytes.IndexByte(head, 0) < 0 || strings.ContainsRune(d.Delimiter+d.RecordEnd, 0) {
		return nil
	}
	sample := head[:min(len(head), 64<<10)]
	if s.o.Encoding == "" {
		if name := charset.GuessUTF16(sample); name != "" {
			return fmt.Errorf("read %s: it looks like %s, without a byte order mark: give --encoding %s", s.Name, name, name)
		}
	}
	if share := unusualShare(sample, s.Encoding.IsUTF8()); share > 0.1 {
		return fmt.Errorf("read %s: the file is not text: %.0f %% of its first bytes are NULs or other control characters; "+
			"if it is CSV, give --format csv", s.Name, 100*share)
	}
	return nil
}

// unusualShare returns the share of bytes that are unusual in rows: most control characters and invalid UTF-8.
func unusualShare(text []byte, isUTF8 bool) float64 {
	n := 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		switch {
		case r == utf8.RuneError && size == 1 && isUTF8 && i+utf8.UTFMax <= len(text):
			n++
		case r == 0 || r > 0x0d && r < 0x1b || r == 0x7f:
			n++
		}
		i += size
	}
	return float64(n) / float64(len(text))
}

// isWide reports whether text is UTF-16, according to its byte order mark or to --encoding.
func (s *File) isWide(head []byte) bool {
	e, _, marked := charset.DetectBOM(head)
	if !marked {
		var err error
		if e, err = charset.Find(s.o.Encoding); err != nil {
			return false // reported where the encoding is used
		}
	}
	return strings.HasPrefix(e.Name(), "utf-16")
}

// isBinary reports whether the first bytes contain control characters that never occur in text. It is used if a magic
// consists of letters. White space, the separators of Hive and ASCII, and bytes of other encodings count as text.
func isBinary(head []byte) bool {
	return bytes.ContainsFunc(head[:min(len(head), 256)], func(r rune) bool {
		return r == 0 || r > 3 && r < ' ' && r != '\t' && r != '\n' && r != '\r' && r < 0x1b
	})
}

// isDuckDB checks the version after the magic, which is a small 64-bit number, because text may contain the letters.
func isDuckDB(head []byte) bool {
	return len(head) >= 20 && string(head[8:12]) == "DUCK" && binary.LittleEndian.Uint64(head[12:]) < 1<<16
}

// isBSON checks the length of the first document and the type and name of its first element.
func isBSON(head []byte) bool {
	if len(head) < 5 {
		return false
	}
	n := binary.LittleEndian.Uint32(head)
	if n < 5 || n > 17<<20 || int(n) <= len(head) && head[n-1] != 0 {
		return false
	}
	if n == 5 {
		return head[4] == 0
	}
	name, _, ended := bytes.Cut(head[5:min(len(head), 256)], []byte{0})
	return (head[4] >= 1 && head[4] <= 0x13 || head[4] == 0x7f || head[4] == 0xff) && ended && len(name) > 0 &&
		utf8.Valid(name) && !isBinary(name)
}

func isWorkbook(head []byte) bool {
	head = head[:min(len(head), 64<<10)]
	return bytes.Contains(head, []byte("[Content_Types].xml")) || bytes.Contains(head, []byte("_rels/.rels")) ||
		bytes.Contains(head, []byte("mimetypeapplication/vnd.oasis.opendocument"))
}

// isZlib checks the header and the data after it, which must inflate to its end with the right checksum or, if cut off,
// for 512 bytes. A text may begin like the header ("x^2", or Hive's "x\x01").
func isZlib(head []byte) bool {
	if len(head) < 8 || head[1]&0x20 != 0 || binary.BigEndian.Uint16(head)%31 != 0 {
		return false
	}
	r, err := zlib.NewReader(bytes.NewReader(head))
	if err != nil {
		return false
	}
	defer r.Close()
	const much = 64 << 10
	n, err := io.CopyN(io.Discard, r, much)
	return err == nil || err == io.EOF && n > 0 || errors.Is(err, io.ErrUnexpectedEOF) && n >= 512
}

// isHadoopBlocks checks the inflated and compressed sizes of the first block, both big-endian.
func isHadoopBlocks(head []byte) bool {
	if len(head) < 10 || head[0] != 0 {
		return false
	}
	plain, packed := binary.BigEndian.Uint32(head), binary.BigEndian.Uint32(head[4:])
	if plain == 0 || plain > 16<<20 || packed < 2 || packed > plain+plain/6+64 {
		return false
	}
	own, n := binary.Uvarint(head[8:])
	return n > 0 && own > 0 && own <= uint64(plain) || 8+uint64(packed) == uint64(len(head))
}
