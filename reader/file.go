package reader

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"example.com/tsimport/reader/charset"
	"example.com/tsimport/reader/compress"
	"example.com/tsimport/reader/csv"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/jsonl"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// File is an open input, a source.Source for one goroutine. Its many fields describe the input and the reading.
type File struct {
	Name    string
	Size    int64    // size of the input in bytes; -1 if unknown
	Columns []string // in the source's order, then those from folder names
	Renamed []string // a sentence for each empty or repeated name that was changed
	Notes   []string // sentences, for example about the detected dialect
	Hint    string   // advice for the user if the columns do not fit; may be empty
	Doubt   string   // why the header of a CSV file must be data; empty if it may be a header

	Format      Format
	Compression compress.Kind
	Encoding    charset.Encoding
	Dialect     csv.Dialect  // of CSV only
	Layout      jsonl.Layout // of JSON only

	ctx      context.Context
	item     input.Item
	o        Options
	at       input.ReaderAtCloser // nil unless a seekable item is open
	file     *RowFile             // for rows with random access
	inOrder  *batches             // for rows read in order
	measured []record.Measures    // units of the columns of file or inOrder, cached
	text     text
	form     form
	reader   *textReader // nil until the first piece
	fixed    []input.Column
	next     int           // for rows: index of the next split
	begin    *source.Place // where to begin reading; nil means at the first record
	chain    *chainer      // for streams; otherwise nil
	decodes  bool          // whether the head has non-ASCII text that is valid in the encoding
	looks    string        // advice about the encoding, from the head; may be empty
	sample   error         // read error in the latest call of Sample
}

// text describes the input as text: its encoding, where its data begins and ends, and what its format found.
type text struct {
	bom        int                       // length of the byte order mark
	offset     int64                     // offset of the first data record in the decompressed text
	lines      int                       // number of lines before offset
	transcode  bool                      // convert to UTF-8 or unfold before cutting
	unfold     func(io.Reader) io.Reader // makes several lines of one; nil if not needed
	decode     bool                      // convert fields to UTF-8 after parsing
	head       []byte
	live       bool      // whether head is from a pipe that may deliver more
	headStream io.Reader // for streams: the whole input, including head
	closer     io.Closer // closes headStream

	named     bool  // read only the records of the named table
	part      bool  // whether the data ends at end, before the text does, as in dumps; UTF-8 only
	end       int64 // offset of the end of the data
	truncated error // why the text is incomplete; nil if it is complete
}

// form is what a format says about the records of an input.
type form struct {
	parser   func(columns []int) source.Parser // parses the input's own columns; those not listed may be Null
	cutter   func(begun bool) recordCutter     // for text that is cut in order; nil if the dialect defines record ends
	raw      func(record []byte) []byte        // converts a rejected record to the form that is kept; nil if unchanged
	broken   func(what string) []byte          // returns a record that cannot be parsed; nil if there is none
	rejects  source.Rejects                    // how to keep rejected records, apart from folders and encoding
	found    []source.Found                    // facts in addition to format and encoding
	wide     bool                              // whether records describe themselves
	lacks    bool                              // whether records may lack columns found in the head
	declared *source.Declared
}

// Open examines an input and reads its header. ctx limits all reads, including later ones.
func Open(ctx context.Context, item input.Item, o Options) (*File, error) {
	if o.Stream == nil {
		o.Stream = func(r io.Reader) io.Reader { return r }
	}
	o.SplitBytes = cmp.Or(o.SplitBytes, DefaultSplitBytes)
	if o.Changes != nil { // a resumed load must not accept another stream
		o.ChainBytes = cmp.Or(o.ChainBytes, 4<<10)
	}
	o.ChainBytes = cmp.Or(o.ChainBytes, defaultChainBytes)
	s := &File{Name: item.Name, Size: item.Size, ctx: ctx, item: item, o: o, fixed: item.Columns}
	if s.Stream() {
		s.chain = newChainer(s.Name, o.ChainBytes)
	}
	if err := s.look(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *File) look() error {
	raw, err := s.rawHead(headBytes)
	if err != nil {
		return err
	}
	rows := s.rowFormat(raw)
	if rows == nil {
		if err := s.refuse(raw, false); err != nil {
			return err
		}
	}
	if _, _, marked := charset.DetectBOM(raw); !marked { // some BOMs are also the first bytes of a container
		s.Compression = compress.Detect(raw, len(raw) < headBytes && !s.text.live)
	}
	if !s.Compression.Supported() {
		return s.refusal(s.Compression.String(), s.Compression.Way(), false)
	}
	if err := s.readHead(raw, headBytes); err != nil {
		return err
	}
	if rows == nil && s.Compression != compress.None {
		rows = s.rowFormat(s.text.head)
	}
	if s.Format = rows; rows == nil {
		if s.Format, err = s.findText(); err != nil {
			return err
		}
	}
	if err := s.Format.open(s); err != nil {
		return err
	}
	if err := s.checkChanges(); err != nil {
		return err
	}
	if s.o.Named.Table != "" && !s.text.part && !s.text.named {
		return fmt.Errorf("read %s: --source-table %s: the file is %v, not a dump", s.Name, s.o.Named.Table, s.Format)
	}
	return nil
}

func (s *File) findText() (Format, error) {
	if s.Compression != compress.None {
		if err := s.refuse(s.text.head, true); err != nil {
			return nil, err
		}
	}
	if err := s.findEncoding(); err != nil {
		return nil, err
	}
	if err := s.refuseBinary(s.utf8Head()); err != nil {
		return nil, err
	}
	if c := s.o.Changes; c != nil && c.Column == "" && s.o.Format == nil {
		if of, _, _ := s.changesOf(); of != nil {
			return of, nil
		}
	}
	return s.textFormat(), nil
}

// rawHead returns up to size bytes from the start of the input, undecoded.
func (s *File) rawHead(size int) ([]byte, error) {
	if s.item.Seekable() {
		if s.at == nil {
			at, err := s.item.OpenAt(s.ctx)
			if err != nil {
				return nil, err
			}
			s.at = at
		}
		head := make([]byte, min(int64(size), max(s.Size, 0)))
		n, err := s.at.ReadAt(head, 0)
		if err != nil && err != io.EOF {
			return nil, err
		}
		return head[:n], nil
	}
	if s.text.headStream == nil {
		opened := &lazy{open: func() (io.ReadCloser, error) { return s.item.Open(s.ctx) }}
		s.text.closer, s.text.headStream = opened, s.o.Stream(opened)
	}
	head := make([]byte, size)
	n, looked, err := s.fill(head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	s.text.headStream = io.MultiReader(bytes.NewReader(head[:n]), s.text.headStream)
	return head[:looked], nil
}

// wholeHead reports whether the head is the whole text, given that size bytes were requested.
func (s *File) wholeHead(size int) bool { return len(s.text.head) < size && !s.text.live }

// firstBlock is more than the largest first block of codecs that decode only whole blocks: 8 MiB in legacy LZ4.
const firstBlock = 9 << 20

func (s *File) setHead(size int) error {
	raw, err := s.rawHead(size)
	if err != nil {
		return err
	}
	return s.readHead(raw, size)
}

// readHead sets the head to the first size bytes of the text, or all of it, given the beginning of the input.
func (s *File) readHead(raw []byte, size int) error {
	if s.Compression == compress.None {
		s.text.head = raw
		return nil
	}
	r, err := compress.NewLimitedReader(s.Compression, bytes.NewReader(raw), s.Name, s.o.Memory.WindowBytes)
	if err != nil {
		return err
	}
	defer r.Close()
	head := make([]byte, size)
	n, err := io.ReadFull(r, head)
	if n == 0 && err != nil && err != io.EOF {
		if len(raw) != size {
			return err // raw was the whole file, or had a whole block
		}
		if raw, err = s.rawHead(firstBlock); err == nil {
			err = s.readHead(raw, size)
		}
		return err
	}
	s.text.head = head[:n] // later errors are reported when the text is read
	return nil
}

// findEncoding sets the encoding, by the byte order mark or the option, and the advice about undecodable text.
func (s *File) findEncoding() error {
	if charset.IsUTF32(s.text.head) {
		return fmt.Errorf("read %s: the text is UTF-32, which is not supported; convert it to UTF-8 first", s.Name)
	}
	mark, n, marked := charset.DetectBOM(s.text.head)
	if marked {
		s.Encoding, s.text.bom = mark, n
	}
	if s.o.Encoding != "" {
		name, forced := strings.CutSuffix(s.o.Encoding, "!")
		given, err := charset.Find(name)
		if err != nil {
			return err
		}
		if !marked || !compatible(given, mark) {
			s.Encoding, s.text.bom = given, 0
		}
		if err := s.contradicts(given); err != nil && !forced {
			return err
		}
	}
	text := s.text.head[min(s.text.bom, len(s.text.head)):]
	s.decodes = decodesWell(s.Encoding, text)
	s.looks = s.looksLike(text)
	return nil
}

// minUTF8 is the number of multi-byte characters that prove UTF-8: a GBK character is valid UTF-8 in 18 % of cases.
const minUTF8 = 8

// contradicts returns an error if the text is clearly not in the given encoding. It adds a note if it may not be.
func (s *File) contradicts(given charset.Encoding) error {
	if mark, _, marked := charset.DetectBOM(s.text.head); marked && !compatible(given, mark) {
		return fmt.Errorf("read %s: it begins with the byte order mark of %s, which contradicts --encoding %s; leave out "+
			"--encoding, or give --encoding '%s!' to read it that way anyway",
			s.Name, mark.Name(), given.Name(), given.Name())
	}
	wide := charset.CountUTF8(s.text.head)
	switch {
	case !given.MultiByte() || wide == 0:
	case wide >= minUTF8:
		return fmt.Errorf("read %s: its beginning is valid UTF-8 with %d non-ASCII characters, which contradicts "+
			"--encoding %s; leave out --encoding, or give --encoding '%s!' to read it that way anyway",
			s.Name, wide, given.Name(), given.Name())
	default:
		s.Notes = append(s.Notes, fmt.Sprintf("%s is read as %s, but its first non-ASCII characters are also valid UTF-8: "+
			"compare the values", s.Name, given.Name()))
	}
	return nil
}

// decodesWell reports whether enough lines with non-ASCII text are valid in the encoding: a few may be by chance.
func decodesWell(e charset.Encoding, text []byte) bool {
	well, not := 0, 0
	var scratch []byte
	for line := range bytes.SplitSeq(text, []byte{'\n'}) {
		beyond := 0
		for _, b := range line {
			beyond += int(b >> 7)
		}
		if beyond == 0 {
			continue
		}
		bad := 0
		if scratch, bad = e.Decode(scratch[:0], line); bad >= 0 {
			not++
		} else if !e.IsUTF8() || beyond > 2 {
			well++
		}
	}
	return well*20 > not
}

// looksLike returns advice if undecodable text seems to be in another encoding, otherwise "".
func (s *File) looksLike(text []byte) string {
	if s.decodes {
		return ""
	}
	if name := charset.Guess(text); name != "" && name != s.Encoding.Name() {
		return fmt.Sprintf("; looks like %s: --encoding %s", name, name)
	}
	return ""
}

// EncodingHint returns advice to append to an error about an undecodable value: the likely encoding of source or value.
func (s *File) EncodingHint(value []byte) string {
	if s.rowwise() || s.text.part {
		return "" // always UTF-8
	}
	if s.looks != "" {
		return s.looks
	}
	return s.looksLike(value)
}

// compatible reports whether the byte order mark's encoding is the given one or a special case of it.
func compatible(given, mark charset.Encoding) bool {
	return given.Name() == mark.Name() || given.Name() == "utf-16" || given.Name() == "gbk" && mark.Name() == "gb18030"
}

// cutPlan decides whether to cut the raw text and, if fields is set, decode its fields, or to transcode it first.
func (s *File) cutPlan(fields bool) {
	if s.Encoding.IsUTF8() {
		return
	}
	d := s.Dialect
	marks := []byte(d.Delimiter + d.Comment + d.RecordEnd + "\r\n")
	if d.Quote != 0 {
		marks = append(marks, d.Quote)
	}
	if d.Escape != 0 {
		marks = append(marks, d.Escape)
	}
	s.text.decode = fields && s.Encoding.SafeBytes(marks)
	s.text.transcode = !s.text.decode
}

// utf8Head returns the beginning of the text in UTF-8, without the byte order mark.
func (s *File) utf8Head() []byte {
	head := s.text.head[min(s.text.bom, len(s.text.head)):]
	if s.Encoding.IsUTF8() {
		return head
	}
	text, _ := io.ReadAll(s.Encoding.NewReader(bytes.NewReader(head))) // reading from memory cannot fail
	return text
}

// Decode returns the decoder of fields that are delivered in the source's encoding; nil if they are UTF-8.
func (s *File) Decode() func(dst, src []byte) ([]byte, int) {
	if !s.text.decode {
		return nil
	}
	return s.Encoding.Decode
}

// addColumns adds columns of other inputs to a source of JSON lines, whose objects may lack them.
func (s *File) addColumns(names []string) {
	own := s.Columns[:len(s.Columns)-len(s.fixed)]
	fixed := slices.Clone(s.Columns[len(own):])
	known := make(map[string]bool, len(s.Columns))
	for _, name := range s.Columns {
		known[name] = true
	}
	for _, name := range names {
		if !known[name] {
			known[name] = true
			own = append(own, name)
		}
	}
	s.Columns = append(own, fixed...)
}

func (s *File) About() source.About {
	r := s.form.rejects
	r.Kind, r.Folder, r.Encoding, r.Raw = cmp.Or(r.Kind, ".ndjson"), s.folder(), s.rejectsEncoding(), s.Raw
	a := source.About{
		Name: s.Name, Bytes: s.Size, Columns: s.Columns, Wide: s.form.wide, Lines: !s.rowwise(), Pieces: s.pieceBytes(),
		Rejects: r, Seeking: s.seeking(), Notes: s.Notes, Renamed: s.Renamed, Hint: s.Hint, Decode: s.Decode(),
		EncodingHint: s.EncodingHint, Found: s.found(), Measures: s.measures(), Declared: s.form.declared,
		GiveBack: s.giveBack,
	}
	if s.form.lacks {
		a.AddColumns = s.addColumns
	}
	if s.chain != nil {
		a.Chain = s.chain.chain
	}
	return a
}

func (s *File) found() []source.Found {
	all := []source.Found{{What: "format", As: s.Format.String()}}
	if !s.rowwise() {
		all = append(all, source.Found{What: "encoding", As: s.Encoding.Name()})
	}
	return append(all, s.form.found...)
}

// folder returns the path of the folders whose names give columns. Rejected records are kept in such folders, too.
func (s *File) folder() string {
	var parts []string
	for _, c := range s.fixed {
		value := c.Value
		if c.Null {
			value = "__HIVE_DEFAULT_PARTITION__"
		}
		parts = append(parts, url.PathEscape(c.Name)+"="+url.PathEscape(value))
	}
	return strings.Join(parts, "/")
}

// SetSplitBytes sets the size of splits that have not been read yet.
func (s *File) SetSplitBytes(n int) { s.o.SplitBytes = n }

func (s *File) SplitBytes() int { return s.o.SplitBytes }

// rejectsEncoding returns the encoding of rejected records, or "" if they are unchanged UTF-8.
func (s *File) rejectsEncoding() string {
	switch {
	case s.text.transcode:
		return "utf-8"
	case s.text.decode:
		if strings.HasSuffix(s.o.Encoding, "!") {
			return s.Encoding.Name() + "!"
		}
		return s.Encoding.Name()
	}
	return ""
}

// Rows returns the number of records, if the source states it, as Parquet and Arrow files do.
func (s *File) Rows() (int64, bool) {
	if s.file == nil {
		return 0, false
	}
	return s.file.Rows, true
}

func (s *File) Close() error {
	var err error
	if s.reader != nil {
		err = s.reader.close()
		s.reader = nil
	}
	if s.inOrder != nil {
		err = errors.Join(err, s.inOrder.close())
	}
	if s.file != nil && s.file.Forget != nil {
		s.file.Forget()
	}
	if s.at != nil {
		err = errors.Join(err, s.at.Close())
		s.at = nil
	}
	if s.text.closer != nil {
		err = errors.Join(err, s.text.closer.Close())
		s.text.closer = nil
	}
	return err
}

// Suspend closes an idle source, which Next reopens. Streams remain open.
func (s *File) Suspend() error {
	if !s.item.Seekable() {
		return nil
	}
	s.text.head, s.next = nil, 0
	return s.Close()
}

// Stream reports whether the source can be read only once.
func (s *File) Stream() bool { return !s.item.Seekable() }

// lazy opens its input at the first read, because opening a named pipe waits for a writer.
type lazy struct {
	open func() (io.ReadCloser, error)
	r    io.ReadCloser
}

func (l *lazy) Read(p []byte) (int, error) {
	if l.r == nil {
		r, err := l.open()
		if err != nil {
			return 0, err
		}
		l.r = r
	}
	return l.r.Read(p)
}

// Close does nothing, because an abandoned read may still be opening the input. The process closes it when it exits.
func (l *lazy) Close() error { return nil }
