// Package atomicfile replaces files atomically: a reader sees the old content or the new content, never a mixture, even
// after a crash or power failure. Write does it all; New and Commit are for a file written over time.
//
// The new content is written to a temporary file beside the old one, in the same folder, with its name plus Suffix. It
// is always a new file, with the given permissions less the umask: anything already there, such as a link or the
// leftover of a killed process, is removed and never written to; a folder there is an error. Then, in this order:
//
//  1. the temporary file is synced and closed;
//  2. the old file is renamed to Options.Previous, if set;
//  3. the temporary file is renamed to the name: from here on readers see the new content;
//  4. the folder is synced: from here on a loss of power leaves the new content.
//
// This is done for every file and costs two syncs, which take milliseconds on a disk. There is no option to skip them:
// a file renamed before it is synced can be empty after a power failure, which no reader expects.
//
// An error of Write leaves no temporary file, if it can be removed, and the old content in its place, with two
// exceptions. An error in step 3 after step 2 leaves the old content under Options.Previous and nothing under the name.
// An error in step 4 leaves the new content, which a power failure may still undo.
//
// Commands pass a user's path to Find, which follows links, recognizes pipes and devices, and refuses files that cannot
// be written. Write itself does not follow a link: it replaces it. If two processes write a file at once, one of them
// wins; the other gets an error only if it notices. To prevent this, take a lock.
//
// Step 4 is skipped without an error if the folder cannot be opened for reading or its file system cannot sync folders,
// as on some network file systems and on Windows. On Windows, renaming over a file that another process has open is an
// error, which leaves the old content.
package atomicfile
