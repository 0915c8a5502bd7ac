package scan

import (
	"bytes"
	"fmt"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
)

// Parameters of guesses from sizes. The service measures split sizes in units of 100 MB.
const (
	guessEvery = time.Minute // each guess costs read capacity units
	guessFirst = 100         // 10 GB, the usual limit of a partition
	guessLimit = 1024        // largest number of split points in a response
	guessMost  = 1000 * guessFirst
)

// Partitions reads the bounds of a table's partitions. It is not safe for concurrent use.
type Partitions struct {
	// Created means that this run created the table. In its first minute it is too small to guess from sizes.
	Created bool
	// See, if not nil, is called by Read with the table's creation time (client.Table.Created). Read returns its error.
	See func(created int64) error

	admin   *client.Admin
	sdk     *tablestore.TableStoreClient
	name    string
	guessed time.Time // time of the last guess; zero if there was none
	guess   []table.Value
	failed  error // error of the last guess
}

// NewPartitions makes a Partitions for the table with the given name.
func NewPartitions(admin *client.Admin, sdk *tablestore.TableStoreClient, name string) *Partitions {
	return &Partitions{admin: admin, sdk: sdk, name: name}
}

// Read returns, in increasing order, the first partition-key value of every partition but the first. exact means that
// the service reported them. Otherwise they are guessed from the sizes of key ranges, at most once a minute; in
// between, Read returns the last guess or its error. Nothing is retried. now is the current time.
func (p *Partitions) Read(now time.Time) (bounds []table.Value, exact bool, err error) {
	layout, err := p.admin.Layout(p.name)
	if err == nil && p.See != nil {
		err = p.See(layout.Created)
	}
	if err != nil {
		return nil, false, err
	}
	if len(layout.Bounds) > 0 {
		return table.SortDistinct(layout.Bounds), true, nil
	}
	if p.Created && p.guessed.IsZero() {
		p.guessed = now
	}
	if p.guessed.IsZero() || now.Sub(p.guessed) >= guessEvery {
		p.guessed = now
		p.guess, p.failed = p.guessFromSizes()
	}
	return p.guess, false, p.failed
}

// guessFromSizes begins with large splits, because a partition that is divided by mistake makes requests half full.
func (p *Partitions) guessFromSizes() ([]table.Value, error) {
	size, grown := int64(guessFirst), false
	for {
		splits, err := p.splitsOf(size)
		if err != nil {
			return nil, fmt.Errorf("estimate the partitions of table %s: %w", p.name, &client.Error{Cause: err})
		}
		if len(splits) >= guessLimit && size < guessMost {
			size, grown = 10*size, true
			continue
		}
		if len(splits) > 1 || size == 1 || grown {
			return recoverPanic("split point", func() ([]table.Value, error) { return boundsOf(splits), nil })
		}
		size /= 10
	}
}

// unitBytes is the service's unit of split sizes.
const unitBytes = 100 << 20

// Size returns an upper limit of the table's size, from the service's splits. Like a guess, it costs read units.
func (p *Partitions) Size() (bytes int64, err error) {
	for size := int64(1); ; size *= 10 {
		splits, err := p.splitsOf(size)
		if err != nil {
			return 0, fmt.Errorf("request the size of table %s: %w", p.name, &client.Error{Cause: err})
		}
		if len(splits) < guessLimit || size >= guessMost {
			return int64(max(1, len(splits))) * size * unitBytes, nil
		}
	}
}

// largeSplit is the split size for LargeValue: 1 GB.
const largeSplit = 10

// LargeValue returns the partition-key value with the most splits and the minimum size of its rows, if that is above
// table.LargestValue; otherwise size is 0. Like a guess, it costs read capacity units.
func (p *Partitions) LargeValue() (value table.Value, size int64, err error) {
	var splits []*tablestore.Split
	each := int64(largeSplit)
	for ; ; each *= 10 {
		if splits, err = p.splitsOf(each); err != nil {
			return value, 0, fmt.Errorf("request the sizes of the values of table %s: %w", p.name, &client.Error{Cause: err})
		}
		if len(splits) < guessLimit || each >= guessMost {
			break
		}
	}
	within := int64(0) // splits that begin and end at the same value
	_, err = recoverPanic("split point", func() (none struct{}, _ error) {
		var last []byte
		for _, s := range splits[min(1, len(splits)):] {
			v := client.ValueOf(s.LowerBound.PrimaryKeys[0].Value)
			key := table.AppendKey(nil, v)
			if within++; !bytes.Equal(key, last) {
				within, last = 0, key
			}
			if taken := within * each * unitBytes; taken > max(size, table.LargestValue) {
				value, size = v, taken
			}
		}
		return none, nil
	})
	return value, size, err
}

// splitsOf requests splits of the table with about the given size, in units of unitBytes.
func (p *Partitions) splitsOf(size int64) ([]*tablestore.Split, error) {
	res, err := recoverPanic("response", func() (*tablestore.ComputeSplitPointsBySizeResponse, error) {
		return p.sdk.ComputeSplitPointsBySize(&tablestore.ComputeSplitPointsBySizeRequest{TableName: p.name, SplitSize: size,
			SplitPointLimit: new(int32(guessLimit))})
	})
	if err != nil {
		return nil, err
	}
	return res.Splits, nil
}

// boundsOf returns the bounds between splits in different locations, or all bounds if the service reports no locations.
func boundsOf(splits []*tablestore.Split) (bounds []table.Value) {
	for i := 1; i < len(splits); i++ {
		if here := splits[i].Location; here != "" && here == splits[i-1].Location {
			continue
		}
		first := client.ValueOf(splits[i].LowerBound.PrimaryKeys[0].Value)
		if first.Type.KeyType() { // not the least or greatest value
			bounds = append(bounds, first)
		}
	}
	return table.SortDistinct(bounds) // two splits may begin at the same partition-key value
}

// Cuts returns increasing keys, or first columns of keys, that divide a table into about equal ranges: at least ranges
// of them, if the table is large enough and the service offers the splits. Without splits, it returns partition bounds.
func Cuts(admin *client.Admin, sdk *tablestore.TableStoreClient, name string, ranges int) ([][]table.Value, error) {
	p := NewPartitions(admin, sdk, name)
	var splits []*tablestore.Split
	for size := int64(guessFirst); ; size /= 10 {
		found, err := p.splitsOf(size)
		if err != nil || len(found) >= guessLimit {
			break // use the splits found before
		}
		if splits = found; len(splits) >= ranges || size == 1 {
			break
		}
	}
	if len(splits) > 1 {
		return recoverPanic("split point", func() ([][]table.Value, error) { return cutsOf(splits), nil })
	}
	bounds, err := admin.Splits(name)
	if err != nil {
		return nil, err
	}
	var cuts [][]table.Value
	for _, b := range table.SortDistinct(bounds) {
		cuts = append(cuts, []table.Value{b})
	}
	return cuts, nil
}

func cutsOf(splits []*tablestore.Split) (cuts [][]table.Value) {
	var last []byte
	for _, s := range splits[1:] {
		var cut []table.Value
		for _, c := range s.LowerBound.PrimaryKeys {
			if c.PrimaryKeyOption != tablestore.NONE {
				break
			}
			v := client.ValueOf(c.Value)
			if !v.Type.KeyType() {
				break // the least value
			}
			cut = append(cut, v)
		}
		key := table.OrderingKey(cut)
		if len(cut) > 0 && bytes.Compare(key, last) > 0 {
			cuts, last = append(cuts, cut), key
		}
	}
	return cuts
}
