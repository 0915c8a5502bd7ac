// Package notices tests that the THIRD_PARTY_NOTICES files contain the licences of all modules in a binary. With
// -update it writes them. It needs no network.
package notices
