// Command tsimport loads files into Alibaba Cloud Tablestore. The work is in the package commands, which other binaries
// share.
package main
