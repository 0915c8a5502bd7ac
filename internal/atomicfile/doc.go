// Package atomicfile replaces files atomically: a reader sees the old content or the new content, never a mixture, even
// after a crash or power failure. Write does everything; New and Commit are for a file that is written over time.
//
// The new content is written to a temporary file in the same folder, named like the old file plus Suffix. It is always
// a new file, with the given permissions less the umask: anything already there, such as a link or the leftover of a
// killed process, is removed and never written to; a folder there is an error. Then, in this order:
//
//  1. the temporary file is synced and closed;
//  2. the old file is renamed to Options.Previous, if set;
//  3. the temporary file is renamed to the name: from here on readers see the new content;
//  4. the folder is synced: from here on the new content survives a power failure.
//
// This is done for every file and costs two syncs, which take milliseconds on a disk. There is no option to skip them:
// a file renamed before it is synced can be empty after a power failure, which no reader expects.
//
// If Write fails, it removes the temporary file if it can, and leaves the old content in place, with two exceptions.
// An error in step 3 after step 2 leaves the old content under Options.Previous and nothing under the name.
// An error in step 4 leaves the new content, which a power failure may still undo.
//
// Commands pass a user's path to Find, which follows links, recognizes pipes and devices, and refuses folders, disks
// and sockets. Write itself does not follow a link but replaces it. If two processes write a file at once, the content
// of one is lost, and its process may not get an error. To prevent this, take a lock.
//
// Step 4 is skipped without an error if the folder cannot be opened for reading or its file system cannot sync folders,
// as on some network file systems and on Windows. On Windows, renaming over a file that another process has open is an
// error, which leaves the old content.
package atomicfile
