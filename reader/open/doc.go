// Package open finds a source's kind by its address and opens it, or refuses it with the way to load its rows.
package open
