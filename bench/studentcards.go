package bench

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"
)

// Order is the order of a dataset's rows.
type Order string

// The row orders of the student-card dataset.
const (
	Sorted  Order = "sorted"  // by CardID
	Arrival Order = "arrival" // in order of purchase
	Random  Order = "random"
)

// StudentCards is a dataset of purchases by student card, the example of the vendor's page on primary-key design. Each
// device belongs to a seller; a few sellers have most devices. OrderNumber grows with time and is unique only within a
// device. CardID, DeviceID and OrderNumber together are unique; CardID and OrderNumber are not.
type StudentCards struct {
	Rows  uint64
	Order Order // "" means Arrival
	Seed  uint64
	Days  int       // number of days with purchases; 0 means DefaultDays
	From  time.Time // time of the first purchase; zero means 2024-01-01T00:00:00Z
}

// DefaultDays is the number of days over which purchases are spread if StudentCards.Days is 0.
const DefaultDays = 90

// The shape of the dataset.
const (
	deviceIDs         = 1_000_000 // DeviceID is 0 to 999,999
	sellers           = 60
	purchasesByCard   = 20            // on average
	purchasesByDevice = 100           // on average, while there are enough DeviceIDs
	firstCard         = 2_000_000_001 // CardID of the first card
	firstOrder        = 100_001       // the lowest OrderNumber
	sameOrder         = 4             // number of devices with the same OrderNumber
)

// CSVHeader is the first line of the dataset.
const CSVHeader = "CardID,SellerID,DeviceID,OrderNumber,Amount,OrderTime,Item\n"

var items = []string{ // quoted for CSV
	"rice bowl", "noodles", "soup", "dumplings", "milk", "tea", "bread", "fruit", "notebook", "pen",
	"printing", "laundry", "shuttle bus", "library fine", "phone card", `"""special"", large"`}

// WriteCSV writes the dataset. It stops when ctx ends.
func (s StudentCards) WriteCSV(ctx context.Context, w io.Writer) error {
	g := newCardGenerator(s)
	out := bufio.NewWriterSize(w, 1<<18)
	if _, err := out.WriteString(CSVHeader); err != nil {
		return fmt.Errorf("write dataset: %w", err)
	}
	var line []byte
	n := 0
	err := g.each(s.Order, func(arrival uint64) error {
		if n++; n&0xfff == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		line = g.appendRow(line[:0], arrival)
		_, err := out.Write(line)
		return err
	})
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return fmt.Errorf("write dataset: %w", err)
	}
	return nil
}

// cardGenerator computes each row from its arrival number alone. In every round, each card buys exactly once.
type cardGenerator struct {
	rows, cards, devices uint64
	first                int64 // Unix time of the first purchase
	span                 time.Duration
	seed                 uint64
	rounds               []permutation // of the cards in a round
	deviceIDs            permutation
	sellerShare          []float64 // cumulative
}

func newCardGenerator(s StudentCards) *cardGenerator {
	g := &cardGenerator{rows: s.Rows, span: time.Duration(cmp.Or(s.Days, DefaultDays)) * 24 * time.Hour, seed: mix(s.Seed),
		cards: max(1, s.Rows/purchasesByCard), devices: min(max(1, s.Rows/purchasesByDevice), deviceIDs)}
	if s.From.IsZero() {
		s.From = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	g.first = s.From.Unix()
	for r := uint64(0); r*g.cards < s.Rows; r++ {
		g.rounds = append(g.rounds, newPermutation(g.cards, mix(g.seed+r)))
	}
	g.deviceIDs = newPermutation(deviceIDs, g.seed^0xd)
	total := 0.0
	for i := range sellers {
		total += math.Pow(float64(i+1), -1.2)
		g.sellerShare = append(g.sellerShare, total)
	}
	for i := range g.sellerShare {
		g.sellerShare[i] /= total
	}
	return g
}

// each calls f with the arrival numbers of the rows in the given order.
func (g *cardGenerator) each(order Order, f func(arrival uint64) error) error {
	switch order {
	case "", Arrival, Random:
		shuffle := newPermutation(g.rows, g.seed^0x5)
		for i := range g.rows {
			if order == Random {
				i = shuffle.at(i)
			}
			if err := f(i); err != nil {
				return err
			}
		}
	case Sorted:
		for card := range g.cards {
			for r := range g.rounds {
				i := uint64(r)*g.cards + g.rounds[r].at(card)
				if i >= g.rows {
					continue
				}
				if err := f(i); err != nil {
					return err
				}
			}
		}
	default:
		return fmt.Errorf("order %q: want sorted, arrival or random", order)
	}
	return nil
}

// where returns a purchase's card, device and order number. From g.rows on, cards repeat; order numbers do not.
func (g *cardGenerator) where(arrival uint64) (card, device, order uint64) {
	inRows := arrival % g.rows
	card = g.rounds[inRows/g.cards].from(inRows % g.cards)
	// Devices take turns. Each turn starts at a different device.
	turn, place := arrival/g.devices, arrival%g.devices
	device = g.deviceIDs.at((arrival + mix(g.seed^turn)) % g.devices)
	// Each turn has its own range of numbers, so a device's numbers grow. A device may be up to a round ahead.
	order = firstOrder + turn*((g.devices+sameOrder-1)/sameOrder) + place/sameOrder
	order += mix(g.seed^0x0de4^device) % max(1, g.cards/sameOrder)
	return card, device, order
}

func (g *cardGenerator) appendRow(dst []byte, arrival uint64) []byte {
	card, device, order := g.where(arrival)
	random := mix(g.seed ^ arrival*0x9e37)
	at := g.first + int64(float64(arrival)/float64(g.rows)*g.span.Seconds())

	dst = strconv.AppendUint(dst, firstCard+card, 10)
	dst = append(dst, ',')
	dst = g.appendSeller(dst, device)
	dst = append(dst, ',')
	dst = strconv.AppendUint(dst, device, 10)
	dst = append(dst, ',')
	dst = strconv.AppendUint(dst, order, 10)
	dst = append(dst, ',')
	dst = strconv.AppendFloat(dst, float64(50+random%4950)/100, 'f', -1, 64)
	dst = append(dst, ',')
	dst = time.Unix(at, 0).UTC().AppendFormat(dst, time.RFC3339)
	dst = append(dst, ',')
	dst = append(dst, items[random>>32%uint64(len(items))]...)
	return append(dst, '\n')
}

// appendSeller appends the seller of a device: a letter and digits.
func (g *cardGenerator) appendSeller(dst []byte, device uint64) []byte {
	u := float64(mix(g.seed^0x5e11e4^device)>>11) / (1 << 53)
	i, _ := slices.BinarySearch(g.sellerShare, u)
	return append(dst, byte('A'+i/10), byte('0'+i%10), byte('0'+i*7%10), byte('1'+i%9))
}
