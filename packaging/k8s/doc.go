// Package k8s tests what the repository has for Kubernetes and for builders of images, with their own types and parsers: manifests are decoded
// strictly as the API server would, the Dockerfile as BuildKit reads it. It is a module of its own, so that none of this is among the dependencies of
// tsimport. Run it with make manifests.
package k8s
