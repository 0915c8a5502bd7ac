// Package k8s tests the repository's files for Kubernetes and image builders with the original types and parsers:
// manifests are decoded as strictly as by the API server, the Dockerfile is parsed by BuildKit. It is a separate
// module, so that tsimport does not depend on them. Run it with make manifests.
package k8s
