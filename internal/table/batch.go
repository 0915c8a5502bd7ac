package table

import "cmp"

// Batch holds the rows of one BatchWriteRow request: at most 200 rows and 4 MB, with different ordering keys. Only Add
// adds rows. The zero Batch is empty and uses the service's limits. A batch can be reused after Reset.
type Batch struct {
	Rows []Ref

	MaxRows int // 0 means MaxBatchRows
	// MaxBytes limits the rows' accounted bytes and the request's body; 0 means the service's limits.
	MaxBytes int
	// RowExtra is the number of bytes sent with each row besides its PlainBuffer; Extra, if set, adds more for one row.
	RowExtra int
	Extra    func(Ref) int

	size int // accounted bytes
	body int // upper limit of the bytes sent
}

// Add adds the row if it fits, and reports whether it did. A first row always fits. No row of the batch may have its
// key.
func (b *Batch) Add(r Ref) bool {
	row := r.Row()
	body := b.bodySize(r)
	if len(b.Rows) > 0 && (len(b.Rows) >= cmp.Or(b.MaxRows, MaxBatchRows) || !b.fits(b.size+row.Size(), b.body+body)) {
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

// Replace replaces row i if the new one fits, and reports whether it did.
func (b *Batch) Replace(i int, r Ref) bool {
	was, row := b.Rows[i], r.Row()
	size, body := b.size-was.Row().Size()+row.Size(), b.body-b.bodySize(was)+b.bodySize(r)
	if len(b.Rows) > 1 && !b.fits(size, body) {
		return false
	}
	b.Rows[i], b.size, b.body = r, size, body
	return true
}

// bodySize returns an upper limit of the bytes that the row takes in a request's body.
func (b *Batch) bodySize(r Ref) int {
	n := r.Row().Bytes() + bodyBytesPerRow + b.RowExtra
	if b.Extra != nil {
		n += b.Extra(r)
	}
	return n
}

// Size returns the accounted bytes of the batch's rows.
func (b *Batch) Size() int { return b.size }

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	clear(b.Rows)
	b.Rows, b.size, b.body = b.Rows[:0], 0, 0
}
