// Package open finds out what a source is by its address, and opens it. An address and how it is to be read come in, what a load reads goes
// out. It promises that a scheme means the same wherever an address stands, and that one which is not read is refused with the way out.
package open
