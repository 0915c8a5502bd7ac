// Command tsimport loads files into Alibaba Cloud Tablestore. Flags and signals come in (newApp); a load, an export, a
// comparison or a server is run with them, and an exit code goes out. It promises that stdout carries results only, and that
// every error is one line that says what failed, on what, why, and what to do. It knows the user, the terminal and the
// environment, nothing else.
package main
