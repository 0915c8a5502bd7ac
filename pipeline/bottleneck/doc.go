// Package bottleneck names what limits a load's speed. A Meter receives the current Word, which package pipeline
// chooses, and returns each word's share of the time. Reason and Advice explain a word.
package bottleneck
