// Command oci writes the image of the Dockerfile as an OCI image layout, without a daemon or a registry: it applies the
// instructions of the last stage to prebuilt binaries. The layout has one index with an image for each architecture.
// The same input gives the same bytes. It is a module with its own libraries. packaging/dist.sh runs it.
package main
