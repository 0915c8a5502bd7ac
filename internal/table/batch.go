package table

import "cmp"

// Batch is the rows of one BatchWriteRow request: at most 200 rows and 4 MB, no ordering key twice. Only Add adds rows.
// The zero Batch is empty and uses the service's limits; a batch may be reused after Reset.
type Batch struct {
	Rows []Ref

	MaxRows int // zero: MaxBatchRows
	// MaxBytes limits the rows' accounted bytes and the request's body; zero means the service's limits.
	MaxBytes int
	// RowExtra is the bytes sent with each row besides its PlainBuffer bytes, Extra this row's; nil means none.
	RowExtra int
	Extra    func(Ref) int

	size int // accounted bytes
	body int // bytes that travel, at most
}

// Add adds the row and reports whether it fit; a row alone always fits. The caller ensures that no key comes twice.
func (b *Batch) Add(r Ref) bool {
	row := r.Row()
	body := b.bodySize(r)
	limit := b.MaxRows
	limit = cmp.Or(limit, MaxBatchRows)
	if len(b.Rows) > 0 && (len(b.Rows) >= limit ||
		!b.fits(b.size+row.Size(), b.body+body)) {
		return false
	}
	b.Rows = append(b.Rows, r)
	b.size += row.Size()
	b.body += body
	return true
}

func (b *Batch) fits(size, body int) bool {
	body += bodyBytesPerRequest
	return size <= MaxBatchBytes && body <= MaxBodyBytes && (b.MaxBytes == 0 || max(size, body) <= b.MaxBytes)
}

// Replace replaces the i-th row and reports whether the new one fits.
func (b *Batch) Replace(i int, r Ref) bool {
	was, row := b.Rows[i], r.Row()
	size, body := b.size-was.Row().Size()+row.Size(), b.body-b.bodySize(was)+b.bodySize(r)
	if len(b.Rows) > 1 && !b.fits(size, body) {
		return false
	}
	b.Rows[i], b.size, b.body = r, size, body
	return true
}

// bodySize returns the most bytes that the row takes in a request's body.
func (b *Batch) bodySize(r Ref) int {
	n := r.Row().Bytes() + bodyBytesPerRow + b.RowExtra
	if b.Extra != nil {
		n += b.Extra(r)
	}
	return n
}

// Size is the accounted bytes of the batch's rows.
func (b *Batch) Size() int { return b.size }

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	clear(b.Rows)
	b.Rows, b.size, b.body = b.Rows[:0], 0, 0
}
