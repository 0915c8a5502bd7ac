// Package atomicfile replaces files so that a reader, and a crash or a loss of power at any moment, finds the old
// content or the new one, never a part. Write does it all; New and Commit are for a file written over time.
//
// The new content is written to a temporary file beside the old one, in the same folder, with its name plus Suffix. It
// is always a new file, with the permissions given less the umask: anything that a killed process or someone else has
// put there, such as a link, is removed and never written to; a folder there is an error. Then, in this order:
//
//  1. the temporary file is synced and closed;
//  2. the old file is renamed to Options.Previous, if set;
//  3. the temporary file is renamed to the name: from here on readers see the new content;
//  4. the folder is synced: from here on a loss of power leaves the new content.
//
// All of it happens for every file. The price is two syncs, milliseconds on a disk. No user is spared them: a file
// renamed before it is synced can be empty after a loss of power, which no reader expects.
//
// An error of Write leaves no temporary file, if it can be removed, and the old content in its place, with two
// exceptions. An error of step 3 after step 2 leaves the old content under Options.Previous and nothing under the name.
// An error of step 4 leaves the new content, which a loss of power may still undo.
//
// A user's path goes through Find, which follows links, and knows pipes, devices and refused files; every command uses
// it. Write itself replaces a link under the name and does not follow it. A file that is written by two at once gets
// the content of one of them; the other gets an error if it notices. To exclude that, take a lock.
//
// A folder that cannot be opened for reading, and a file system that cannot sync folders (some network file systems),
// skip step 4 without an error. So does Windows, which syncs no folders; there a rename over a file that another
// process has open is an error, which leaves the old content.
package atomicfile
