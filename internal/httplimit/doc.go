// Package httplimit provides a Transport that limits the size of responses that are read into memory whole: errors,
// listings and answers to writes. Downloads of objects are not limited.
package httplimit
