// Command tsimport loads files into Alibaba Cloud Tablestore. The work is in package commands, which others share.
package main
