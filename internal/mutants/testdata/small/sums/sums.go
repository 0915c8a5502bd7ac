// Package sums is what the tests of mutants are tried on.
package sums

import "errors"

var errNegative = errors.New("a negative number")

// Sum adds up numbers; negative ones are left out, if skip says so.
func Sum(numbers []int, skip bool) (sum int, err error) {
	for _, n := range numbers {
		if n < 0 {
			if !skip {
				return 0, errNegative
			}
			continue
		}
		sum += n
	}
	return sum, nil
}

// Unseen is called by no test.
func Unseen(n int) bool { return n > 1 }
