// Package progress is about the files that say how far something has come: what a later attempt continues from. Write replaces such a file whole. Read
// and Decode refuse one that is damaged, or of another version, and say what to do. Changes compares what an attempt has begun with and what a later
// one is asked for. What stands in the files is the matter of their rooms.
package progress
