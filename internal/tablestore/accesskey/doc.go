// Package accesskey finds the access keys of an Alibaba Cloud account in the environment or through the official
// library's provider chain. It returns a provider to ask before every request, because keys rotate. It shows no keys.
package accesskey
