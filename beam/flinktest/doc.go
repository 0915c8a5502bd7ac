// Package flinktest runs loads on a real Flink of this machine: a JobManager, two TaskManagers and Beam's job server, which are killed. It needs what
// install.sh installs: make flink.
package flinktest
