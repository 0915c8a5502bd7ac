// Package words formats messages for users. Grouped and Bytes format numbers; a Say receives lines, each of a Kind.
package words
