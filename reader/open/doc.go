// Package open detects the kind of a source by its address. It opens the source, or refuses it and says how to load it.
package open
