package sums

import "testing"

func TestSum(t *testing.T) {
	if sum, err := Sum([]int{1, 2, -1}, true); sum != 3 || err != nil {
		t.Errorf("%d, %v", sum, err)
	}
}
