package job

import (
	"fmt"
	"slices"
	"strings"
)

// nearest returns the words that a mistyped one is closest to, none if it is far from all.
func nearest(word string, words []string) (near []string) {
	least := max(1, len(word)/3)
	for _, w := range words {
		switch d := edits(word, w); {
		case d < least:
			least, near = d, []string{w}
		case d == least && !slices.Contains(near, w):
			near = append(near, w)
		}
	}
	return near
}

// edits is how many letters are to be changed, left out, put in or swapped with the next to make a word of another.
func edits(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			change := rows[i-1][j-1]
			if x[i-1] != y[j-1] {
				change++
			}
			rows[i][j] = min(change, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(x)][len(y)]
}

// didYouMean names the nearest words, "" if there is none.
func didYouMean(word string, words []string) string {
	near := nearest(word, words)
	if len(near) == 0 {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", strings.Join(near, " or "))
}
