// Package words formats messages to users. Grouped and Bytes write numbers; a Say receives lines, each of a Kind.
package words
