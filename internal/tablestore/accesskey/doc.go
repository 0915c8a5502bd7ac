// Package accesskey finds the access keys of an Alibaba Cloud account: in the environment, or from the provider chain
// of the official library. It returns a provider that is asked for every request: keys may rotate. None is shown.
package accesskey
