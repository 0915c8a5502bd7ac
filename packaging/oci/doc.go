// Command oci writes the image that the Dockerfile describes as an OCI image layout, without a daemon or a registry: it
// applies the instructions of the last stage to binaries that are built already. The layout has one index with an image
// for each architecture. The same input gives the same bytes. The command is a module of its own, so that none of this is
// among the dependencies of tsimport. packaging/dist.sh runs it.
package main
