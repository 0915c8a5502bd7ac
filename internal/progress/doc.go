// Package progress reads and writes the files from which a later attempt continues. Write replaces such a file whole.
// Read and Decode refuse one that is damaged, or of another version, and say what to do. Changes compares an attempt's
// facts with a later one's. The contents of the files belong to their rooms.
package progress
