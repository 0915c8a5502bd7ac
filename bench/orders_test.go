package bench

import "testing"

// As with real purchases, a device has many orders, numbered for itself: without the device two purchases of a card may have one key.
func TestOrdersAreNumberedByDevice(t *testing.T) {
	const n = 20_000
	k, err := NewKeys(StudentCardKeys, n, 1)
	must(t, err)
	orders, numbers := map[[2]int64]bool{}, map[int64]bool{}
	last, byDevice := map[int64]int64{}, map[int64]int{}
	var integers []int64
	var text []byte
	for range 2 * n { // more than was said
		integers, text = k.Next(integers, text)
		device, order := integers[2], integers[3]
		if orders[[2]int64{device, order}] {
			t.Fatalf("device %d has order %d twice", device, order)
		}
		if order <= last[device] {
			t.Fatalf("device %d: order %d after %d", device, order, last[device])
		}
		orders[[2]int64{device, order}], numbers[order], last[device] = true, true, order
		byDevice[device]++
	}
	if len(numbers) > n {
		t.Errorf("%d order numbers for %d orders: they are unique without the device", len(numbers), 2*n)
	}
	if len(byDevice) > 2*n/50 {
		t.Errorf("%d devices for %d orders", len(byDevice), 2*n)
	}
}
