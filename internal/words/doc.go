// Package words writes numbers as people read them. A number comes in, text goes out; it promises nothing else.
package words
