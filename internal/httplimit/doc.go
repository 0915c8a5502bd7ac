// Package httplimit provides a Transport that limits the size of answers, so that no server fills the memory.
package httplimit
