// Command tsimport loads files into Alibaba Cloud Tablestore. What it does is in the package commands, which other binaries share.
package main
