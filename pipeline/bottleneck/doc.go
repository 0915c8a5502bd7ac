// Package bottleneck names what limits a load. A Meter is told one Word at a time, and returns how much of the time each word
// was true: of the whole load, of the last moment, and of what lies between two calls. Reason and Advice make sentences of a
// word; docs/tuning.md has a section for each. The package decides nothing: package pipeline finds the word that is true now.
package bottleneck
