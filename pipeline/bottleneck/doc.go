// Package bottleneck names what limits a load. A Meter is told one Word at a time and returns for how much of the time
// each word was true: in the whole load, lately, and between two calls. Reason and Advice turn a word into sentences;
// docs/tuning.md has a section for each. The package decides nothing: package pipeline finds the current word.
package bottleneck
