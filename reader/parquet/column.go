package parquet

import (
	"errors"
	"fmt"
	"io"
)

var (
	errShortColumn = errors.New("column ends before the last row of the row group")
	errLongColumn  = errors.New("column holds more than the row group's rows")
)

// column is a cursor over a leaf's entries (values or nulls) in a row group. Its many fields are reused memory.
type column struct {
	leaf  *leaf
	win   window
	codec int32
	left  int64 // number of entries in pages not opened yet
	page  int
	n     int   // number of entries of the page not in the batch yet
	fresh bool  // whether the next entry must begin a row
	last  int64 // offset of the end of the chunk's pages, according to the footer

	repLevels hybrid
	defLevels hybrid
	reps      [batch]uint32 // all 0 if the leaf has no repetition levels
	defs      [batch]uint32
	at, have  int // index of the current entry in the batch; number of entries in the batch
	val       int // index in values of the next value

	owner    *Parser // keeps account of the memory
	values   values
	mem      []byte // the decompressed page
	held     int64  // memory of the dictionary in bytes
	pageHeld int64  // memory of a decompressed page and its values in bytes
	numbers  [16]byte
	readable []byte // scratch for text that shows a value
}

func newColumn(l *leaf, p *Parser) *column {
	c := &column{leaf: l, owner: p}
	c.win.owner = p
	c.values.init(l)
	c.values.writer = p.file.footer.writer
	return c
}

// open moves the cursor to the first entry of a row group.
func (c *column) open(r io.ReaderAt, m *chunkMeta, end int64) error {
	if err := codecError(m.codec); err != nil {
		return err
	}
	start := m.data
	if m.dict > 0 && m.dict < start {
		start = m.dict
	}
	c.codec, c.left, c.page = m.codec, m.values, 0
	c.n, c.at, c.have, c.val = 0, 0, 0, 0
	c.fresh, c.last = true, start+m.bytes
	c.dropDictionary()
	c.win.r, c.win.buf, c.win.off = r, nil, start
	// Old versions of parquet-mr do not count the header of the dictionary page in the size (PARQUET-816).
	c.win.end = min(end, start+m.bytes+100)
	return nil
}

func (c *column) dropDictionary() {
	c.values.dictionary, c.values.dictInts, c.values.dictBins = false, nil, nil
	c.owner.Held -= c.held
	c.held = 0
}

// release frees all memory. The column must then be opened again.
func (c *column) release() {
	c.dropDictionary()
	c.owner.Held -= int64(cap(c.win.mem)) + c.pageHeld
	c.win.mem, c.win.buf, c.mem, c.pageHeld = nil, nil, nil, 0
	c.forget()
}

// forget drops all slices that point into a page.
func (c *column) forget() {
	c.repLevels, c.defLevels = hybrid{}, hybrid{}
	c.values.forget()
}

// failure is the value of a panic that Parse turns into an error.
type failure struct{ error }

// fail panics with an error about the column; Parse adds the file and the row group.
func (c *column) fail(err error) { panic(failure{fmt.Errorf("column %s: %w", c.leaf.path, err)}) }

func (c *column) check(err error) {
	if err != nil {
		c.fail(err)
	}
}

func (c *column) checkPage(err error) {
	if err != nil {
		c.fail(fmt.Errorf("page %d: %w", c.page, err))
	}
}

// advance moves to the next entry if the current one has been consumed. It returns false at the end.
func (c *column) advance() bool {
	if c.at < c.have {
		return true
	}
	for c.n == 0 {
		if c.left == 0 {
			return false
		}
		none := int64(0)
		c.nextPage(&none)
	}
	c.fill()
	return true
}

// need is like advance, but fails with otherwise if there is no entry.
func (c *column) need(otherwise error) {
	if !c.advance() {
		c.fail(otherwise)
	}
}

func (c *column) fill() {
	n := min(c.n, c.values.batch())
	if c.leaf.maxRep > 0 {
		c.checkPage(readLevels(&c.repLevels, c.reps[:n], uint32(c.leaf.maxRep)))
		if c.fresh && c.reps[0] != 0 {
			c.checkPage(errors.New("its first entry does not begin a row"))
		}
		c.fresh = false
	}
	filled := n
	if top := uint32(c.leaf.maxDef); top > 0 {
		c.checkPage(readLevels(&c.defLevels, c.defs[:n], top))
		for _, d := range c.defs[:n] {
			if d != top {
				filled--
			}
		}
	}
	c.checkPage(c.values.take(filled))
	if c.n -= n; c.n == 0 {
		c.checkPage(c.finish())
	}
	c.at, c.have, c.val = 0, n, 0
}

// finish checks that nothing follows the entries of a page.
func (c *column) finish() error {
	if c.leaf.maxRep > 0 {
		if err := c.repLevels.finishLevels(c.values.writer.group()); err != nil {
			return fmt.Errorf("repetition levels: %w", err)
		}
	}
	if c.leaf.maxDef > 0 {
		if err := c.defLevels.finishLevels(c.values.writer.group()); err != nil {
			return fmt.Errorf("definition levels: %w", err)
		}
	}
	return c.values.finish()
}

func readLevels(h *hybrid, dst []uint32, top uint32) error {
	if err := h.read(dst); err != nil {
		return fmt.Errorf("levels: %w", err)
	}
	for _, level := range dst {
		if level > top {
			return fmt.Errorf("level %d is more than %d", level, top)
		}
	}
	return nil
}

// next moves past the current entry. It returns the index of its value in values, or -1 for a null.
func (c *column) next() int {
	def := c.defs[c.at]
	c.at++
	if def != uint32(c.leaf.maxDef) {
		return -1
	}
	c.val++
	return c.val - 1
}

// nextPage opens the next data page and sets n. It skips whole pages within skip rows and subtracts their rows.
func (c *column) nextPage(skip *int64) {
	c.win.want = c.owner.readAhead()
	if *skip > 0 {
		c.win.want = headerBytes
	}
	for c.left > 0 {
		if c.win.left() == 0 {
			c.checkPage(errShortColumn)
		}
		h, err := readHeader(&c.win)
		c.checkPage(err)
		switch h.kind {
		case pageDictionary:
			if err := c.readDictionary(h); err != nil {
				c.checkPage(fmt.Errorf("dictionary: %w", err))
			}
			continue
		case pageData, pageDataV2:
		default: // the format requires readers to ignore other kinds
			c.win.skip(int64(h.stored))
			continue
		}
		c.page++
		if int64(h.values) > c.left {
			c.checkPage(errLongColumn)
		}
		c.left -= int64(h.values)
		if *skip > 0 {
			if rows := c.rowsOf(h); rows > 0 && rows <= *skip {
				*skip -= rows
				c.win.skip(int64(h.stored))
				continue
			}
		}
		if h.values == 0 {
			c.win.skip(int64(h.stored))
			continue
		}
		c.win.want = c.owner.readAhead()
		c.checkPage(c.openPage(h))
		return
	}
}

// rowsOf returns the number of rows that begin in a page, without opening it, or 0 if unknown. It ignores the header's
// number of rows, which is that of entries in Arrow before 12. The levels of a v2 page are not compressed.
func (c *column) rowsOf(h *pageHeader) (rows int64) {
	if c.leaf.maxRep == 0 {
		return int64(h.values)
	}
	if h.kind != pageDataV2 {
		return 0
	}
	b, err := c.win.peek(int64(h.repLevels))
	c.checkPage(err)
	var levels hybrid
	c.checkPage(levels.reset(b, widthOf(c.leaf.maxRep)))
	for left := int(h.values); left > 0; {
		n := min(left, batch)
		c.checkPage(readLevels(&levels, c.reps[:n], uint32(c.leaf.maxRep)))
		for _, level := range c.reps[:n] {
			if level == 0 {
				rows++
			}
		}
		left -= n
	}
	return rows
}

func (c *column) readDictionary(h *pageHeader) error {
	if c.values.dictionary {
		return errors.New("the column already has one")
	}
	// A value in a dictionary takes an integer or a slice in addition to its bytes.
	each := int64(8)
	if c.values.bins != nil {
		each = 24
	}
	n := int64(h.size) + each*min(int64(h.values), int64(h.size))
	if err := c.owner.Hold(n); err != nil {
		return err
	}
	c.held += n
	var mem []byte
	b, _, err := h.load(&c.win, c.codec, &mem)
	if err != nil {
		return err
	}
	if mem == nil {
		b = append([]byte(nil), b...) // a copy, because the window will move
	}
	return c.values.setDictionary(h.encoding, int(h.values), b)
}

// holdPage reserves the memory of a page before it is decompressed.
func (c *column) holdPage(h *pageHeader) error {
	need := h.needs(c.codec)
	if need <= c.pageHeld {
		return nil
	}
	c.mem = nil // the values of the previous page have been consumed
	c.forget()
	if err := c.owner.Hold(need - c.pageHeld); err != nil {
		return err
	}
	c.pageHeld = need
	return nil
}

func (c *column) openPage(h *pageHeader) error {
	if err := c.holdPage(h); err != nil {
		return err
	}
	b, levels, err := h.load(&c.win, c.codec, &c.mem)
	if err != nil {
		return err
	}
	rep, def := widthOf(c.leaf.maxRep), widthOf(c.leaf.maxDef)
	if h.kind == pageDataV2 {
		// A column may have levels although it needs none.
		if err := c.repLevels.reset(levels[:h.repLevels], rep); err != nil {
			return err
		}
		if err := c.defLevels.reset(levels[h.repLevels:], def); err != nil {
			return err
		}
	} else {
		if rep > 0 {
			if b, err = splitLevels(b, h.repLevels, rep, h.values, &c.repLevels); err != nil {
				return fmt.Errorf("repetition levels: %w", err)
			}
		}
		if def > 0 {
			if b, err = splitLevels(b, h.defLevels, def, h.values, &c.defLevels); err != nil {
				return fmt.Errorf("definition levels: %w", err)
			}
		}
	}
	c.n = int(h.values)
	c.fresh = c.fresh || h.kind == pageDataV2 // a v2 page holds whole rows
	return c.values.open(h.encoding, b)
}

// skip skips whole rows. It leaves the cursor before the first entry of a row.
func (c *column) skip(rows int64) {
	for {
		if c.at == c.have && c.n == 0 && c.left > 0 {
			c.nextPage(&rows)
		}
		if rows == 0 && (c.leaf.maxRep == 0 || !c.advance()) {
			return
		}
		if c.need(errShortColumn); c.reps[c.at] == 0 {
			if rows == 0 {
				return
			}
			rows--
		}
		c.next()
	}
}

// done checks that nothing follows the last row.
func (c *column) done() error {
	if c.at < c.have || c.n > 0 || c.left > 0 {
		return errLongColumn
	}
	if at := c.win.off - int64(len(c.win.buf)); at < c.last {
		return fmt.Errorf("%d bytes of the column follow its last page", c.last-at)
	}
	return nil
}
