// Package lanes sends the rows of a load. Each partition has a lane: a queue of unsent rows, a pacer, and what its
// answers have shown. The dispatcher puts rows in and takes landings; the package decides which lane sends next, and
// how much.
package lanes
