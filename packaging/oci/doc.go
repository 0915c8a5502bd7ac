// Command oci writes the Dockerfile's image as an OCI image layout without a daemon or registry: it applies the last
// stage's instructions to prebuilt binaries, for each architecture, reproducibly. packaging/dist.sh runs it.
package main
