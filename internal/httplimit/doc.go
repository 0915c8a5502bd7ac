// Package httplimit provides a Transport that limits the size of responses, so that no server can exhaust memory.
package httplimit
