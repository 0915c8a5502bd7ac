// Package notices keeps the THIRD_PARTY_NOTICES files, the licences of everything in a binary, up to date, for tests:
// they compare a file with the built modules, and write it with -update. It needs no network.
package notices
