// Package lanes sends the rows of a load. Each partition has a lane: a queue of unsent rows, a pacer, its answers so
// far. The dispatcher puts rows in and takes landings; the package decides which lane sends next, how much.
package lanes
