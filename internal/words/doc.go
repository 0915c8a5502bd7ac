// Package words is how programs tell people things: Grouped writes numbers as people read them, and a Say takes lines for the user, each of
// a kind. It promises nothing else.
package words
