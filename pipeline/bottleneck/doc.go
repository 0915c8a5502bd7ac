// Package bottleneck names what limits a load. A Meter is told one Word at a time and returns the share of time of
// each: overall, lately, and between two calls. Reason and Advice explain a word; package pipeline chooses it.
package bottleneck
