package suggest

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// longest limits the letters of a word that is compared, because the time grows with the product of both lengths.
const longest = 64

// Nearest returns the words closest to a mistyped one, or none if all differ too much. See distance.
func Nearest(word string, words []string) (near []string) {
	least := 2 * max(1, utf8.RuneCountInString(word)/3)
	length := utf8.RuneCountInString(word)
	for _, w := range words {
		if 2*max(length-utf8.RuneCountInString(w), utf8.RuneCountInString(w)-length) > least {
			continue // the lengths differ too much
		}
		switch d := distance(word, w); {
		case w == word, d >= 2*max(length, utf8.RuneCountInString(w)): // equal, or completely different
		case d < least:
			least, near = d, []string{w}
		case d == least && !slices.Contains(near, w):
			near = append(near, w)
		}
	}
	return near
}

// Hint returns the end of a message about an unknown word: "; did you mean …?", or "" if no word is similar.
func Hint(word string, words []string) string {
	near := Nearest(word, words)
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(near, " or ") + "?"
}

// distance returns twice the number of letters to replace, delete, insert or swap to turn a into b; case counts half.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	if len(x) > longest || len(y) > longest {
		return 2 * max(len(x), len(y))
	}
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = 2 * i
	}
	for j := range rows[0] {
		rows[0][j] = 2 * j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			change := rows[i-1][j-1]
			switch {
			case x[i-1] == y[j-1]:
			case strings.EqualFold(string(x[i-1]), string(y[j-1])):
				change++
			default:
				change += 2
			}
			rows[i][j] = min(change, rows[i-1][j]+2, rows[i][j-1]+2)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+2)
			}
		}
	}
	return rows[len(x)][len(y)]
}

// Arg quotes an argument for a shell if necessary.
func Arg(text string) string {
	if text != "" && strings.IndexFunc(text, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,@%+", r)
	}) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
