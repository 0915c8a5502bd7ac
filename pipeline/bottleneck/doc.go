// Package bottleneck names what limits a load. A Meter receives one Word at a time and returns each word's share of the
// time: overall, recently, and between two calls. Reason and Advice explain a word; package pipeline chooses it.
package bottleneck
