// Package accesskey finds the access keys of an Alibaba Cloud account: in the environment, or from the provider chain of the official
// library. A provider that is asked for every request comes out, so that keys may rotate. It promises that no key is shown.
package accesskey
