// Package restore loads exact archives into tables. An archive comes in; what the table must be like to have all that the archive has goes
// out, or a refusal before the first row. It promises that the command and the library restore the same rows of an archive, and nothing
// less than it holds. Copies share what they ask of a key and of indexes.
package restore
