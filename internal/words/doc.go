// Package words formats what programs tell users: Grouped writes numbers, and a Say takes lines, each of a kind.
package words
