package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var errDelta = errors.New("damaged DELTA_BINARY_PACKED header")

// delta reads DELTA_BINARY_PACKED in batches, because a block may claim any number of values of zero bits.
type delta struct {
	b      []byte
	per    uint64 // number of values per miniblock
	minis  int
	left   uint64 // number of values not returned yet
	first  bool   // whether the first value, from the header, is still to be returned
	last   int64
	floor  int64
	widths []byte // bit widths of the remaining miniblocks of the block
	width  uint64
	mini   uint64 // number of values left in the miniblock
	bit    uint64 // position in b of the next value, in bits
}

func (d *delta) reset(b []byte) error {
	*d = delta{b: b}
	block, _ := d.uvarint() // if one of these fails, all that follow fail
	minis, _ := d.uvarint()
	d.left, _ = d.uvarint()
	var err error
	if d.last, err = d.varint(); err != nil {
		return err
	}
	d.first = true
	if d.left <= 1 && (minis == 0 || block == 0) {
		return nil // there are no blocks
	}
	if minis == 0 || minis > 1<<16 || block == 0 || block > 1<<31 || block%minis != 0 || block/minis%8 != 0 {
		return fmt.Errorf("%w: blocks of %d values in %d miniblocks", errDelta, block, minis)
	}
	d.minis, d.per = int(minis), block/minis
	return nil
}

func (d *delta) uvarint() (uint64, error) {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		return 0, errDelta
	}
	d.b = d.b[n:]
	return v, nil
}

func (d *delta) varint() (int64, error) {
	u, err := d.uvarint()
	return int64(u>>1) ^ -int64(u&1), err
}

func (d *delta) next() error {
	d.b = d.b[min((d.bit+7)/8, uint64(len(d.b))):]
	d.bit = 0
	if len(d.widths) == 0 {
		floor, err := d.varint()
		if err != nil {
			return err
		}
		if len(d.b) < d.minis || d.minis == 0 {
			return errShort
		}
		d.floor, d.widths, d.b = floor, d.b[:d.minis], d.b[d.minis:]
	}
	d.width, d.widths = uint64(d.widths[0]), d.widths[1:]
	if d.width > 64 {
		return fmt.Errorf("%w: bit width %d is more than 64", errDelta, d.width)
	}
	d.mini = d.per
	if min(d.mini, d.left)*d.width > uint64(len(d.b))*8 {
		return errShort
	}
	return nil
}

func (d *delta) read(dst []int64) error {
	if uint64(len(dst)) > d.left {
		return errShort
	}
	if len(dst) > 0 && d.first {
		dst[0] = d.last
		dst = dst[1:]
		d.first = false
		d.left--
	}
	for len(dst) > 0 {
		if d.mini == 0 {
			if err := d.next(); err != nil {
				return err
			}
		}
		n := int(min(d.mini, uint64(len(dst))))
		d.unpack(dst[:n])
		dst = dst[n:]
		d.mini -= uint64(n)
		d.left -= uint64(n)
	}
	return nil
}

func (d *delta) unpack(dst []int64) {
	last := d.last
	mask := uint64(1)<<d.width - 1 // a shift by 64 gives 0, so the mask is all ones
	for i := range dst {
		v := load(d.b, d.bit)
		if d.width > 57 {
			v = v&(1<<56-1) | load(d.b, d.bit+56)<<56
		}
		last += d.floor + int64(v&mask)
		dst[i] = last
		d.bit += d.width
	}
	d.last = last
}

// rest returns the bytes after all remaining values. It skips miniblocks without decoding them. d cannot be used again.
func (d *delta) rest() ([]byte, error) {
	if d.first && d.left > 0 {
		d.first = false
		d.left--
	}
	for d.left > 0 {
		if d.mini == 0 {
			if err := d.next(); err != nil {
				return nil, err
			}
		}
		d.left -= min(d.left, d.mini)
		d.bit += d.mini * d.width
		d.mini = 0
	}
	d.bit += d.mini * d.width // skip the rest of a partly returned miniblock
	return d.b[min((d.bit+7)/8, uint64(len(d.b))):], nil
}
