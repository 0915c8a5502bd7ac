// Package model judges histories of concurrent requests to the engine: a history must have an order in which a simple
// model of one partition key gives the same answers. engine/contract has the answers to single requests.
package model
