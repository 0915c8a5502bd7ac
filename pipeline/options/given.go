package options

import (
	"strings"
	"time"
	"unicode"
)

// Given is what a user has given, by the names of the flags of tsimport load. What was not given has its default, and IsSet says
// so. A *cli.Context of the command is all of it but Texts.
type Given interface {
	IsSet(name string) bool
	String(name string) string
	Bool(name string) bool
	Int(name string) int
	Int64(name string) int64
	Float64(name string) float64
	Duration(name string) time.Duration
	// Texts returns an option that may be repeated.
	Texts(name string) []string
}

// FlagName returns the name of the flag that a field of a struct of options stands for: words in small letters with dashes between them. Capitals in a row are one word.
func FlagName(field string) string {
	letters := []rune(field)
	var name strings.Builder
	for i, r := range letters {
		if i > 0 && unicode.IsUpper(r) && (unicode.IsLower(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])) {
			name.WriteByte('-')
		}
		name.WriteRune(unicode.ToLower(r))
	}
	return name.String()
}
