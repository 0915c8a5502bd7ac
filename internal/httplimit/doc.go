// Package httplimit limits answers of object stores and gateways, so that none fills the memory. Transport wraps one.
package httplimit
