//go:build !unix

package atomicfile

const nonBlocking = 0
