// Command oci writes the Dockerfile's image as an OCI image layout, reproducibly and without a daemon or registry. It
// applies the last stage's instructions to a prebuilt binary for each architecture. packaging/dist.sh runs it.
package main
