package bench

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
)

func generate(t testing.TB, s StudentCards) [][]string {
	t.Helper()
	var out bytes.Buffer
	conformance.Must(t, s.WriteCSV(context.Background(), &out))
	records := conformance.Try(csv.NewReader(&out).ReadAll()).Must(t)
	return records[1:]
}

func TestPermutationIsInvertible(t *testing.T) {
	for _, n := range []uint64{1, 2, 3, 5, 100, 1000, 4096, 4097} {
		p := newPermutation(n, 42)
		seen := map[uint64]bool{}
		for i := range n {
			j := p.at(i)
			conformance.MustTrue(t, j < n && !seen[j], "n %d: %d goes to %d", n, i, j)
			seen[j] = true
			conformance.MustEqual(t, p.from(j), i, "n %d: way to %d and back", n, j)
		}
	}
}

func TestOrdersHaveSameRows(t *testing.T) {
	for _, rows := range []uint64{0, 1, 19, 20, 21, 1234} {
		var sorted [][]string
		for _, order := range []Order{Arrival, Sorted, Random} {
			got := generate(t, StudentCards{Rows: rows, Order: order, Seed: 7})
			conformance.MustEqual(t, uint64(len(got)), rows, "%s: %d rows", order, len(got))
			if order == Sorted && !slices.IsSortedFunc(got, func(a, b []string) int { return strings.Compare(a[0], b[0]) }) {
				t.Error("sorted is not by CardID")
			}
			if order == Arrival && !slices.IsSortedFunc(got, func(a, b []string) int { return strings.Compare(a[5], b[5]) }) {
				t.Error("arrival is not by OrderTime")
			}
			slices.SortFunc(got, func(a, b []string) int { return slices.Compare(a, b) })
			if sorted == nil {
				sorted = got
			}
			conformance.Equal(t, slices.EqualFunc(got, sorted, slices.Equal[[]string]), true, "%d rows in order %s", rows, order)
		}
	}
}

func number(s string) int { return conformance.Try(strconv.Atoi(s)).Must(conformance.Sure{}) }

func TestDatasetMatchesVendorPage(t *testing.T) {
	rows := generate(t, StudentCards{Rows: 50_000, Seed: 1})
	sellerOf, perSeller, perCard, perDevice := map[string]string{}, map[string]int{}, map[string]int{}, map[string]int{}
	lastOrder, byCardAndOrder := map[string]int{}, map[string]int{}
	firstHalf := map[string]int{}
	for i, r := range rows {
		card, seller, device := r[0], r[1], r[2]
		d := number(device)
		conformance.MustTrue(t, d >= 0 && d <= 999_999, "device %s", device)
		s, ok := sellerOf[device]
		conformance.MustTrue(t, !ok || s == seller, "device %s belongs to %s and %s", device, s, seller)
		sellerOf[device] = seller
		conformance.MustTrue(t, seller[0] >= 'A' && seller[0] <= 'Z' && strings.Trim(seller[1:], "0123456789") == "",
			"seller %s is not a letter and digits", seller)
		last, ok := lastOrder[device]
		conformance.MustTrue(t, !ok || number(r[3]) > last, "device %s: order %s after %d", device, r[3], last)
		lastOrder[device] = number(r[3])
		byCardAndOrder[card+" "+r[3]]++
		perDevice[device]++
		perSeller[seller]++
		perCard[card]++
		if i < len(rows)/2 {
			firstHalf[card]++
		}
	}
	most := 0
	for _, n := range perSeller {
		most = max(most, n)
	}
	conformance.True(t, len(perSeller) <= sellers && most >= len(rows)/6,
		"%d sellers, the largest has %d of %d purchases: want few and skewed", len(perSeller), most, len(rows))
	for device, n := range perDevice {
		conformance.MustEqual(t, n, purchasesByDevice, "device %s: purchases", device)
	}
	// With only CardID and OrderNumber as the key, a few purchases would be lost, as in real data.
	if repeats := len(rows) - len(byCardAndOrder); repeats < 5 || repeats > len(rows)/100 {
		t.Errorf("%d of %d purchases repeat a card and an order number; want a few", repeats, len(rows))
	}
	for card, n := range perCard {
		conformance.MustTrue(t, n == purchasesByCard && firstHalf[card] == purchasesByCard/2,
			"card %s: %d purchases, %d in the first half; want %d, half of them", card, n, firstHalf[card], purchasesByCard)
	}
}

func TestDatasetIsReproducible(t *testing.T) {
	var example bytes.Buffer
	conformance.Must(t, (StudentCards{Rows: 10_000, Seed: 1}).WriteCSV(context.Background(), &example))
	kept := conformance.Try(os.ReadFile("../examples/student-cards.csv")).Must(t)
	conformance.True(t, bytes.Equal(example.Bytes(), kept),
		"examples/student-cards.csv is not what `tsimport gen student-cards --rows 10000` writes")
	var other bytes.Buffer
	conformance.Must(t, (StudentCards{Rows: 10_000, Seed: 2}).WriteCSV(context.Background(), &other))
	conformance.Equal(t, bytes.Equal(example.Bytes(), other.Bytes()), false, "another seed gives the same rows")
}

func TestPurchasesFallOnRequestedDays(t *testing.T) {
	from := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	rows := generate(t, StudentCards{Rows: 1000, Days: 31, From: from})
	first, last := rows[0][5], rows[999][5]
	conformance.True(t, first == "2026-10-01T00:00:00Z" && last >= "2026-10-31T23" && last < "2026-11",
		"from %s to %s", first, last)
}

func TestGenerationStopsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	stopped := errors.New("stopped")
	cancel(stopped)
	conformance.Is(t, (StudentCards{Rows: 1 << 40, Order: Random}).WriteCSV(ctx, new(bytes.Buffer)), stopped, "write csv")
	conformance.True(t, (StudentCards{Rows: 1, Order: "none"}).WriteCSV(context.Background(), new(bytes.Buffer)) != nil,
		"an unknown order was accepted")
}

func taken(t *testing.T, kind KeyKind, rows, seed uint64, n int) (keys []string, first map[int64]int) {
	t.Helper()
	k := conformance.Try(NewKeys(kind, rows, seed)).Must(t)
	first = map[int64]int{}
	var integers []int64
	var text []byte
	for range n {
		integers, text = k.Next(integers, text)
		conformance.MustEqual(t, len(integers), len(k.Columns()), "%s: values", kind)
		keys = append(keys, fmt.Sprintf("%v %s", integers, text))
		first[integers[0]]++
	}
	return keys, first
}

var kinds = []KeyKind{RandomKeys, SequentialKeys, ZipfKeys, StudentCardKeys}

func TestKeysAreUniqueAndDependOnSeed(t *testing.T) {
	for _, kind := range kinds {
		keys, _ := taken(t, kind, 5000, 1, 20000) // more than NewKeys was told
		again, _ := taken(t, kind, 5000, 1, 20000)
		conformance.Same(t, keys, again, "%s: the same seed gives other keys", kind)
		other, _ := taken(t, kind, 5000, 2, 20000)
		conformance.True(t, kind == SequentialKeys || !slices.Equal(keys, other), "%s: two seeds give the same keys", kind)
		slices.Sort(keys)
		conformance.Equal(t, len(slices.Compact(keys)), 20000, "%s: different keys of 20000", kind)
	}
	conformance.True(t, conformance.ErrorOf(NewKeys("sorted", 1, 1)) != nil, "keys of no kind are made")
}

func TestKeysHaveTheirDistributions(t *testing.T) {
	const n = 20000
	most := func(kind KeyKind) int {
		_, first := taken(t, kind, n, 1, n)
		most := 0
		for _, count := range first {
			most = max(most, count)
		}
		return most
	}
	if m := most(ZipfKeys); m < n/12 || m > n/6 {
		t.Errorf("zipf: the most frequent value has %d of %d rows, want about an eighth", m, n)
	}
	conformance.Equal(t, most(RandomKeys), 1, "random: rows of a value")
	conformance.Equal(t, most(StudentCardKeys), purchasesByCard, "student cards: purchases of a card")
	keys, first := taken(t, RandomKeys, n, 1, n)
	low := 0
	for k := range first {
		if k < 0 {
			low++
		}
	}
	conformance.True(t, low >= n*45/100 && low <= n*55/100, "random: %d of %d keys in the lower half", low, len(keys))
}

func TestShapesMatchTheirNames(t *testing.T) {
	for name, want := range map[string]struct{ columns, bytes int }{"12": {12, 150}, "3": {3, 60}, "60": {60, 0}} {
		s := conformance.Try(FindShape(name)).Must(t)
		var text bytes.Buffer
		conformance.Must(t, s.WriteCSV(context.Background(), &text, 1000, 7))
		_, rows, _ := strings.Cut(text.String(), "\n")
		conformance.True(t, want.bytes <= 0 || len(rows) == 1000*want.bytes,
			"shape %s: %d bytes for 1,000 rows, want %d each", name, len(rows), want.bytes)
		records, err := csv.NewReader(&text).ReadAll()
		conformance.MustTrue(t, err == nil && len(records) == 1001 && len(records[0]) == want.columns,
			"shape %s: %d records, %v", name, len(records), err)
		ids := map[string]bool{}
		for _, r := range records[1:] {
			checkRecord(t, s, r)
			ids[r[0]] = true
		}
		conformance.Equal(t, len(ids), 1000, "shape %s: ids for 1,000 rows", name)
	}
	conformance.True(t, conformance.ErrorOf(FindShape("13")) != nil, "a shape that there is not was found")
}

// checkRecord checks that every value is in its kind's canonical form, so that no load takes a number for text.
func checkRecord(t *testing.T, s Shape, record []string) {
	for i, c := range s.Columns {
		text := record[i]
		same := false
		switch c.Kind {
		case IntegerValues:
			v, err := strconv.ParseInt(text, 10, 64)
			same = err == nil && strconv.FormatInt(v, 10) == text
		case DoubleValues:
			v, err := strconv.ParseFloat(text, 64)
			same = err == nil && strconv.FormatFloat(v, 'f', -1, 64) == text
		case StringValues:
			same = text[0] >= 'a' && text[0] <= 'z'
		}
		conformance.True(t, same && len(text) == c.Length, "shape %s, column %s: %q", s.Name, c.Name, text)
	}
}

func TestWriteCSVStopsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	conformance.Refused(t, Shapes()[0].WriteCSV(ctx, new(bytes.Buffer), 10, 1), "", "no error")
}
