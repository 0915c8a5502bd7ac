// Command tsimport loads files into Alibaba Cloud Tablestore. Package commands does the work.
package main
