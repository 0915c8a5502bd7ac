// Package worker is the process in which a runner has tasks done. A runner starts the binary as it would start the boot program of Beam's containers;
// Main connects to the runner and does what it says until its control stream ends, and then ends. Nothing is downloaded: the binary
// itself has all that the tasks need. MainPool is a server that starts such processes for runners that cannot.
package worker
