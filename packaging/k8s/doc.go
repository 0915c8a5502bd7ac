// Package k8s tests the repository's files for Kubernetes and image builders with the original types and parsers. It is
// a separate module, so that tsimport does not depend on those. make manifests runs the tests.
package k8s
