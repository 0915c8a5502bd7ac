// Package model judges histories of concurrent requests to the engine: a history must have an order in which a model of
// one partition key, maps and nothing clever, gives the same answers. What a single request is answered is said by
// engine/contract.
package model
