// Package lanes sends the rows of a load. Each partition has a lane: a queue of unsent rows, a pacer, and the state of
// its answers. The dispatcher puts rows in and takes landings; the package decides which lane sends next, and how much.
package lanes
