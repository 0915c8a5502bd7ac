// Package open finds the kind of a source by its address and opens it, or refuses it and says how to load its rows.
package open
