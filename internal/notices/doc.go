// Package notices keeps the files THIRD_PARTY_NOTICES, the licences of everything that a binary contains, up to date, for tests: they
// compare a file with the modules that are built, and with -update write it. It needs no network.
package notices
