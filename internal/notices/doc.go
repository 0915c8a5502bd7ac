// Package notices keeps THIRD_PARTY_NOTICES, the licences of everything that the binary contains, up to date. Its test
// compares the file with the modules that are built; with -update it writes the file. It needs no network.
package notices
