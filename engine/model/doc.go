// Package model checks that histories of concurrent requests to the engine are linearizable: a simple model of one
// partition key must give the same answers in some order. engine/contract tests single requests.
package model
