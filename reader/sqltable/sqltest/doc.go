// Package sqltest reads tables of servers for the tests of their rooms, and gives the servers a place to run.
package sqltest
